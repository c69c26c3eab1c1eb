"""The look that a fit takes at itself: simulate, set beside the data, compare."""

"""Polya-Gamma weights, which make a logistic likelihood Gaussian (Polson et al. 2013)."""

from __future__ import annotations

import numpy as np
from polyagamma import random_polyagamma

from ncbayes.base import FloatArray

# Beyond this |z| the second term of PG(1, z)'s series is below exp(-2 |z|) of the first, which is
# the inverse Gaussian with mean 1 / (2 |z|) and shape 1/4. polyagamma 2.0.2 itself overflows
# there: from |z| of about 180 it returns 0.16 whatever z is.
LARGE = 50.0


def polya_gamma(log_odds: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draws from PG(1, log_odds), for log odds of any size."""
    size = np.abs(log_odds)
    large = size > LARGE
    if not large.any():
        return np.asarray(random_polyagamma(1.0, log_odds, random_state=rng, disable_checks=True))
    weights = np.empty_like(size)
    weights[large] = rng.wald(0.5 / size[large], 0.25)
    if not large.all():
        weights[~large] = random_polyagamma(
            1.0, log_odds[~large], random_state=rng, disable_checks=True
        )
    return weights

"""Exponential families, one file a family."""

from ncbayes.models.simple import Exponential, Gamma, Gaussian, VonMises

__all__ = ["Exponential", "Gamma", "Gaussian", "VonMises"]

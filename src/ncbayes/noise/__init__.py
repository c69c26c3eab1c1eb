"""Noise: distributions that can be drawn from and evaluated, and when a chain changes them."""

from ncbayes.noise.distributions import (
    Bernoulli,
    Gamma,
    Mixture,
    Normal,
    Product,
    StudentT,
    Uniform,
    VonMises,
    matched,
)
from ncbayes.noise.schedules import Fixed, Fresh, Pooled

__all__ = [
    "Bernoulli",
    "Fixed",
    "Fresh",
    "Gamma",
    "Mixture",
    "Normal",
    "Pooled",
    "Product",
    "StudentT",
    "Uniform",
    "VonMises",
    "matched",
]

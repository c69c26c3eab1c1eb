"""Designs as operators, and exact draws from the Gaussian conditional of all groups at once."""

from ncbayes.linalg.designs import Bordered, Dense, with_intercept
from ncbayes.linalg.gaussian import (
    METHODS,
    Conditional,
    block_tridiagonal,
    cholesky,
    choose_method,
    conjugate_gradients,
    draw,
    given_grams,
    predicted_seconds,
    woodbury,
)

__all__ = [
    "METHODS",
    "Bordered",
    "Conditional",
    "Dense",
    "block_tridiagonal",
    "cholesky",
    "choose_method",
    "conjugate_gradients",
    "draw",
    "given_grams",
    "predicted_seconds",
    "with_intercept",
    "woodbury",
]

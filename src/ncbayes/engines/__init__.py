"""Markov kernels for coef and the prior's scales."""

from ncbayes.engines.gibbs import Gibbs

__all__ = ["Gibbs"]

"""Markov kernels for coef and the prior's scales."""

from ncbayes.engines.gibbs import Gibbs
from ncbayes.engines.hyvarinen import Hyvarinen
from ncbayes.engines.nuts import Nuts

__all__ = ["Gibbs", "Hyvarinen", "Nuts"]

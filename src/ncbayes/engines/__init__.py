"""Markov kernels for coef and the prior's scales."""

from ncbayes.engines.exact import Exact
from ncbayes.engines.exchange import Exchange
from ncbayes.engines.gibbs import Gibbs
from ncbayes.engines.hyvarinen import Hyvarinen
from ncbayes.engines.joint import Joint
from ncbayes.engines.nuts import Nuts
from ncbayes.engines.pseudolikelihood import Pseudolikelihood

__all__ = ["Exact", "Exchange", "Gibbs", "Hyvarinen", "Joint", "Nuts", "Pseudolikelihood"]

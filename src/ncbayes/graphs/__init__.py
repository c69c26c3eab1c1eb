"""Read-outs of graphical models: which edges there are, how strong, and where conditions differ.

An edge has one or more coefficients: ``cos_minus, sin_minus, cos_plus, sin_plus`` for a torus graph
(of cos and sin of xj - xk and of xj + xk), ``coupling`` for zeros and ones, spins and counts,
``precision`` for a truncated Gaussian graph. Two sizes of an edge:

    strength = sum over its coefficients of |posterior median|      one number (the paper's)
    norm     = sqrt(sum over its coefficients of theta^2)           one number a draw

Two rules select edges (the paper's section 5):

    "interval"    some equal-tailed interval of ``level`` excludes zero (the default)
    "median"      some |posterior median| exceeds ``threshold``

Whatever the rule, ``probability`` is the posterior probability that the norm exceeds ``threshold``.
Differences of two conditions have rules of their own, in ``contrast``.
"""

from ncbayes.graphs.differences import contrast
from ncbayes.graphs.edge_tables import (
    WAVES,
    adjacency,
    edges,
    phase_difference,
    regions,
    to_networkx,
)
from ncbayes.graphs.shuffles import PermutationCheck, permutation_check

__all__ = [
    "WAVES",
    "PermutationCheck",
    "adjacency",
    "contrast",
    "edges",
    "permutation_check",
    "phase_difference",
    "regions",
    "to_networkx",
]

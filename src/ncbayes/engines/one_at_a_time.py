"""The paper's sampler of time-varying densities (S2.1): theta of one time after the other, then c.

For comparison only: each is drawn given its neighbours, so that chains hardly move.
"""

from __future__ import annotations

import numpy as np

from ncbayes.base import FloatArray, Precision
from ncbayes.linalg.gaussian import Conditional, given_grams


def drawn(conditional: Conditional, coef: FloatArray, rng: np.random.Generator) -> FloatArray:
    """coef with theta of every group from its conditional, then every c from its own."""
    moved, theta, last = np.array(coef), slice(0, -1), slice(-1, None)
    for columns, others in ((theta, last), (last, theta)):
        for group in range(len(moved)):
            moved[group, columns] = _part(conditional, moved, group, columns, others, rng)
    return moved


def _part(
    conditional: Conditional,
    coef: FloatArray,
    group: int,
    columns: slice,
    others: slice,
    rng: np.random.Generator,
) -> FloatArray:
    """Some columns of one group given everything else."""
    prior, gram = conditional.prior, conditional.designs[group].gram(conditional.weights[group])
    full = gram + (np.diag(prior.within[group]) if prior.within.ndim == 2 else prior.within[group])
    right = conditional.shift[group, columns] - full[columns, others] @ coef[group, others]
    if prior.between is not None:
        if group > 0:
            right = right - (prior.between[group - 1] * coef[group - 1])[columns]
        if group < len(coef) - 1:
            right = right - (prior.between[group] * coef[group + 1])[columns]
    precision = Precision(np.zeros((1, len(right))))
    normals = rng.standard_normal((1, len(right)))
    drawn = given_grams([full[columns, columns]], precision, right[None], normals)
    return np.asarray(drawn[0])

"""The log odds of dyads, theta . change statistics, in the form that compiled sweeps take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ncbayes.base import FloatArray
from ncbayes.models.terms import SIDES, Degrees, Dyads, Mutual, Partners, Term
from ncbayes.spaces import Graphs


class Form(NamedTuple):
    """See ``ergm_sweep.sweep``."""

    linear: FloatArray
    mutual: float
    steps: FloatArray
    slope: float
    table: FloatArray


def form_of(
    terms: Sequence[Term], space: Graphs, theta: FloatArray, linear: FloatArray
) -> Form | None:
    """The form at theta; None if some term is not one of ours.

    ``linear`` is what the terms of single dyads add up to.
    """
    nodes = space.nodes
    steps = np.zeros((len(SIDES), 2 * nodes))
    table = np.zeros(nodes + 1)
    mutual = slope = 0.0
    for term, weight in zip(terms, theta.tolist(), strict=True):
        if isinstance(term, Degrees):
            steps[SIDES.index(term.side)] += weight * np.diff(term.table(2 * nodes))
        elif isinstance(term, Partners):
            table += weight * term.table(nodes) / term.times
            slope += weight
        elif isinstance(term, Mutual):
            mutual += weight
        elif not isinstance(term, Dyads):
            return None
    curved = any(isinstance(term, Partners) and term.curve != "linear" for term in terms)
    return Form(linear, mutual, steps, slope, table if curved else np.zeros(0))

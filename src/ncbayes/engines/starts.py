"""Where sweeps may begin."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ncbayes.base import FloatArray
from ncbayes.contrast import Target


def intercepts(target: Target) -> FloatArray:
    """For theta = 0, the c of each group that makes as many points likely data as there are data.

    By Newton's method; 0 for a group without points.
    """
    found = np.zeros(len(target.contrasts))
    for g, each in enumerate(target.contrasts):
        for _ in range(50):
            chance = expit(each.offset + found[g])
            excess, curvature = np.sum(each.is_data - chance), np.sum(chance * (1 - chance))
            found[g] += np.clip(excess / max(curvature, 1e-10), -2.0, 2.0)
    return found

"""Polya-Gamma Gibbs sampling of the pseudolikelihood's posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from ncbayes.base import Draw
from ncbayes.contrast import Target
from ncbayes.engines.gibbs import Gibbs

# The labelled targets of targets with conditionals, for as long as those are in use.
_LABELLED: WeakKeyDictionary[Target, Target] = WeakKeyDictionary()


@dataclass(frozen=True)
class Pseudolikelihood:
    """weights -> theta -> scales, as ``Gibbs``, on the product of full conditionals; no log Z.

    The conditionals of all coordinates are a logistic regression without intercept. They count
    every dependence more than once, so that intervals are not calibrated in general.
    """

    likelihood: ClassVar[str] = "conditionals"

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        return Gibbs().start(_labelled(target), rng)

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        return Gibbs().step(_labelled(target), draw, rng)


def _labelled(target: Target) -> Target:
    """The target with contrasts in the place of losses; the same one every time."""
    if target not in _LABELLED:
        contrasts = tuple(each.contrast for each in target.losses)
        _LABELLED[target] = Target(contrasts, target.prior, normalizer=False)
    return _LABELLED[target]

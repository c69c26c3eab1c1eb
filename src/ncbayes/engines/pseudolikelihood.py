"""The posterior of the pseudolikelihood."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from ncbayes.contrast import Kernel, Target, kernel_of
from ncbayes.engines import joint
from ncbayes.engines.bound import Bound
from ncbayes.engines.gibbs import Gibbs


@dataclass(frozen=True)
class Pseudolikelihood(Bound):
    """theta and scales as by ``Joint``, on the product of full conditionals; no log Z.

    The conditionals of all coordinates are a logistic regression without intercept. They count
    every dependence more than once, so that intervals are not calibrated in general. Under a prior
    that ``Joint`` does not take, sweeps are those of ``Gibbs``.
    """

    tune: int = field(default=0, repr=False)
    likelihood: ClassVar[str] = "conditionals"

    def adapting(self, sweeps: int) -> Pseudolikelihood:
        """The same engine, which adapts in so many sweeps from the start."""
        return replace(self, tune=sweeps)

    def kernel(self, target: Target) -> Kernel:
        """What is prepared once for a target: its conditionals as labels."""
        contrasts = tuple(each.contrast for each in target.losses)
        labelled = Target(contrasts, target.prior, normalizer=False)
        engine = joint.Joint(self.tune) if joint.usable(labelled) else Gibbs()
        return kernel_of(engine, labelled)

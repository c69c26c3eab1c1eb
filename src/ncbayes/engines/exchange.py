"""The exchange algorithm (Murray, Ghahramani and MacKay 2006): simulated data instead of log Z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ncbayes.base import Draw, FloatArray, InputError, shown
from ncbayes.contrast import Target
from ncbayes.engines.around import approached, conditional, gaussian

# Squared length of a proposal, in posterior sds: what the noise of one simulated data set allows.
JUMP = 5.7
# Trials to find a start where the model exists.
MOST_TRIALS = 50


@dataclass(frozen=True)
class Exchange:
    """theta -> scales; theta' is accepted by data simulated at theta', as many rows as there are.

    With S the sum of the statistics over the data and S' over the simulated rows, the normalizers
    cancel: the ratio of likelihoods becomes ``exp((theta' - theta) . (S - S'))``. Proposals are
    ``mean + rho (theta - mean) + sqrt(1 - rho^2) e`` around the Gaussian of prior and pilot.
    The posterior is exact if the simulated rows are. ``sweeps``: rows by so many Gibbs sweeps from
    the data instead of ``model.sample``, faster and less exact. ``proposals``: in a sweep, for
    each group.
    """

    sweeps: int | None = None
    proposals: int = 1
    likelihood: ClassVar[str] = "simulated"

    def __post_init__(self) -> None:
        for name, value in (("sweeps", self.sweeps), ("proposals", self.proposals)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if (value is None and name == "sweeps") or (whole and int(value or 0) >= 1):
                continue
            default = "None, or " if name == "sweeps" else ""
            raise InputError(
                f"Exchange({name}=...) must be {default}a whole number, 1 or more, got "
                f"{shown(value)}"
            )

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """Around the pilot, sqrt(5) times as wide as the posterior, where the model exists."""
        for each in target.losses:
            each.check(self.sweeps)
        scales = approached(target, rng)
        mean, near = gaussian(target, scales, 1.0, rng)
        wide = 5**0.5
        for _ in range(MOST_TRIALS):
            theta = mean + wide * (near - mean)
            pairs = zip(target.losses, theta, strict=True)
            if all(each.simulated(row, self.sweeps, rng) is not None for each, row in pairs):
                break
            wide /= 2
        return Draw(theta, scales)

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        theta, accepted = np.array(draw.coef), []
        for g in range(len(theta)):
            for _ in range(self.proposals):
                theta[g], moved = self._exchanged(target, draw, theta, g, rng)
                accepted.append(moved)
        scales = target.prior.update(draw.scales, theta, rng)
        return Draw(theta, scales, {"acceptance": float(np.mean(accepted))})

    def _exchanged(
        self, target: Target, draw: Draw, theta: FloatArray, group: int, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """One proposal for one group: its theta then, and 1 if it moved."""
        loss, now = target.losses[group], theta[group].copy()
        mean, normal = conditional(target, draw.scales, theta, group, 1.0, rng)
        rho = max(0.0, 1 - JUMP / 2 / len(now))
        there = mean + rho * (now - mean) + (1 - rho**2) ** 0.5 * (normal - mean)
        threshold = -rng.standard_exponential()
        simulated = loss.simulated(there, self.sweeps, rng)
        if simulated is None:
            return now, 0.0
        # The proposal is reversible for prior times expansion, so that the prior cancels too.
        change = there - now
        expanded = change @ loss.shift - (there @ loss.gram @ there - now @ loss.gram @ now) / 2
        accepted = bool(change @ (loss.total - simulated) - expanded > threshold)
        return (there, 1.0) if accepted else (now, 0.0)

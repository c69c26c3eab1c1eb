"""A random walk over groups that stand in order, such as times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, Precision, State
from ncbayes.priors.normal import LEAST, check_scale


@dataclass(frozen=True)
class RandomWalk:
    """``theta_t ~ N(theta_{t-1}, lambda I)``, ``theta_0 = 0``, ``lambda ~ IG(shape, rate)``.

    The paper's prior of time-varying densities (section 4.1), for equally spaced times.
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            check_scale(f"RandomWalk({name}=...)", getattr(self, name))

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        # With a small shape, such as 0.001, about half of the gamma's draws underflow to 0.
        return {"variance": self.rate / np.maximum(rng.standard_gamma(self.shape, 1), LEAST)}

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        step = 1 / float(state["variance"][0])
        within = np.full(shape, 2 * step)
        within[-1] = step
        between = np.full((shape[0] - 1, shape[1]), -step) if shape[0] > 1 else None
        return Precision(within, between), np.zeros(shape)

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        steps = np.diff(theta, axis=0, prepend=np.zeros((1, theta.shape[1])))
        rate = self.rate + np.sum(steps**2) / 2
        return {"variance": rate / rng.standard_gamma(self.shape + theta.size / 2, 1)}

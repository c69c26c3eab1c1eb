"""Automatic noise: its settings, and the families that it tries on each space."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from ncbayes.base import FloatArray, InputError, Noise, Space, shown
from ncbayes.noise.copula import Copula
from ncbayes.noise.distributions import Mixture, Normal, Uniform
from ncbayes.noise.fitted import gaussian_mixture, margins
from ncbayes.noise.kernels import KernelDensity
from ncbayes.noise.restricted import Restricted
from ncbayes.noise.tree import Tree
from ncbayes.spaces import (
    Binary,
    Box,
    Counts,
    Orthant,
    Reals,
    Region,
    Torus,
    is_numeric,
    is_whole,
)

Family = Callable[[FloatArray], Noise]
# Families with many parameters of their own: taken only where they are clearly better.
RICH = ("margins", "copula", "gaussian mixture", "tree", "kernel density")
# Share of the uniform in kernel noise on a region: kernels lose up to half of their mass at the
# border, and have next to none where there are no data. More kernels cost time and gain nothing:
# at 2000 rows of three bumps on an L, 500 did as well as noise from the model itself.
BROAD, MOST_KERNELS = 0.2, 500


@dataclass(frozen=True)
class Auto:
    """Noise made for you: the default of ``fit``, where ``noise="auto"`` is ``noise=Auto()``.

    For a model that can simulate itself (``sweep``, or exact ``sample`` and ``log_partition``) it
    is a mixture led by the fitted model, so that it covers the data and the model's own mass. It is
    made in rounds of noise, a short fit and a look at it by simulation, which decides.

    For other models candidates are tried out for a batch of sweeps each and scored by the share of
    the exact likelihood's information that the contrast with it keeps: noise matched to the data,
    fitted families, and the fitted model itself, tempered. The best is taken, or a simpler one that
    is nearly as good; noise that follows the data closely only if it is clearly better.
    ``posterior.noise_report()`` tells why.

    Parameters
    ----------
    loss
        Where ``noise_ratio`` is not given: noise points are added until intervals are
        at most this much wider than with the exact likelihood, in the mean over statistics...
    seconds
        ...and at most while a chain is predicted to take less than this, and memory holds it.
        Beyond ten points a row, a twelfth of this.
    alphas
        How far toward the fitted model the tempered candidates go.
    most_ratio
        The largest noise ratio to choose.
    batch
        Sweeps of a trial; the short fit of a round has four times as many.
    rounds
        How many rounds there are at most; or how often the tempered candidates are made, each time
        at the best estimate so far: a round that gains little is the last.
    """

    loss: float = 0.05
    seconds: float = 60.0
    alphas: tuple[float, ...] = (0.5, 0.9)
    most_ratio: float = 100.0
    batch: int = 50
    rounds: int = 5

    def __post_init__(self) -> None:
        for name in ("loss", "seconds", "most_ratio"):
            value = getattr(self, name)
            if not (is_numeric(value) and np.ndim(value) == 0 and 0 < value < math.inf):
                raise InputError(f"Auto({name}=...) must be a positive number, got {shown(value)}")
        fine = isinstance(self.alphas, tuple | list) and all(
            is_numeric(alpha) and np.ndim(alpha) == 0 and 0 < alpha <= 1 for alpha in self.alphas
        )
        if not fine:
            raise InputError(
                "Auto(alphas=...) must be numbers above 0 and up to 1, such as (0.5, 0.9), got "
                f"{shown(self.alphas)}"
            )
        for name, least in (("batch", 2), ("rounds", 0)):
            value = getattr(self, name)
            if not is_whole(value) or value < least:
                raise InputError(
                    f"Auto({name}=...) must be a whole number, at least {least}, got {shown(value)}"
                )

    def trial_count(self, space: Space, twice: bool = False) -> int:
        """How many candidates are tried out on a space, at most.

        ``twice``: of energies, for which matched noise is tried twice.
        """
        return 1 + twice + len(families(space)) + len(self.alphas) * self.rounds


@singledispatch
def families(space: Space) -> Mapping[str, Family]:
    """Families of noise to fit on a space, the simplest first, besides the one matched to it."""
    return {}


@families.register
def _(space: Torus) -> Mapping[str, Family]:
    uniform: dict[str, Family] = {"uniform": lambda data: Uniform(space)}
    if space.dimension == 1:
        return uniform | {"margins": lambda data: margins(data, space)}
    return uniform | {"margins": lambda data: margins(data, space), "tree": Tree.match}


@families.register
def _(space: Reals) -> Mapping[str, Family]:
    alone: dict[str, Family] = {
        "normal": Normal.match,
        "margins": lambda data: margins(data, space),
        "gaussian mixture": gaussian_mixture,
    }
    if space.dimension == 1:
        return alone
    return alone | {"copula": lambda data: Copula.match(data, space)}


@families.register
def _(space: Counts) -> Mapping[str, Family]:
    return {"margins": lambda data: margins(data, space)}


@families.register(Orthant)
@families.register(Box)
def _(space: Space) -> Mapping[str, Family]:
    alone: dict[str, Family] = {"margins": lambda data: margins(data, space)}
    if space.dimension == 1:
        return alone
    return alone | {"copula": lambda data: Copula.match(data, space)}


@families.register
def _(space: Region) -> Mapping[str, Family]:
    def kernels(data: FloatArray) -> Noise:
        inside = Restricted.to(KernelDensity.match(data, most=MOST_KERNELS), space)
        return Mixture([inside, Uniform(space)], (1 - BROAD, BROAD))

    return {"kernel density": kernels}


@families.register
def _(space: Binary) -> Mapping[str, Family]:
    return {"uniform": lambda data: Uniform(space)}

"""The label test of every engine and way of drawing, crossed with every prior and pair of priors.

NCBAYES_TEST_FULL=1 runs all rounds, as users do.
"""

import os
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import testing, worlds
from ncbayes.base import Precision
from ncbayes.engines import Exact, Exchange, Gibbs, Hyvarinen, Joint, Nuts, Pseudolikelihood
from ncbayes.priors import (
    HalfCauchyNormal,
    Hierarchical,
    Horseshoe,
    MultivariateNormal,
    Normal,
    RandomWalk,
)

WAYS = {
    "joint": Joint(),
    "gibbs": Gibbs(),
    "cholesky": Gibbs("cholesky"),
    "block tridiagonal": Gibbs("block_tridiagonal"),
    "woodbury": Gibbs("woodbury"),
    "conjugate gradients": Gibbs("conjugate_gradients"),
    "runs": Gibbs("runs"),
    "one at a time": Gibbs("one_at_a_time"),
    "hyvarinen": Hyvarinen(0.3),
    "exact": Exact(),
    "exact by slices": Exact("slices"),
    "exchange": Exchange(proposals=3),
    "pseudolikelihood": Pseudolikelihood(),
}
# One after the other in one test each, because they compile for every shape.
COMPILED = {"nuts": Nuts(), "nuts, diagonal metric": Nuts(metric="diagonal")}

WALK = RandomWalk(2.0, 1.0, initial="walk")
ALONE = {
    "normal": Normal(0.7, mean=0.4),
    "full normal": MultivariateNormal(np.array([[3, 2, 0.5], [2, 2, -0.3], [0.5, -0.3, 2]]), 0.3),
    "half-Cauchy": HalfCauchyNormal(0.8),
    "walk": WALK,
    "walks": replace(WALK, per_statistic=True, initial="separate"),
    "population": Hierarchical(0.5, 1.0),
    "diagonal population": Hierarchical(0.5, 1.0, "diagonal"),
    "horseshoe": Horseshoe(),
    "slab as likelihood": Horseshoe(slab=0.5, slab_form="likelihood"),
    "fixed tau": Horseshoe(tau=0.5),
}
# One of every kind for mappings, which cross each with each; left out: a full matrix.
KINDS: dict[str, Any] = {
    "left out": None,
    "normal": Normal(0.7, mean=0.4),
    "half-Cauchy": HalfCauchyNormal(0.8),
    "walk": WALK,
    "population": Hierarchical(0.5, 1.0),
    "horseshoe": Horseshoe(),
}


def mapped(**priors):
    return {block: prior for block, prior in priors.items() if prior is not None}


PRIORS = {
    **ALONE,
    **{
        f"{second} and {first}": mapped(first=KINDS[second], second=KINDS[first])
        for first, second in combinations(KINDS, 2)
    },
    "two half-Cauchy": mapped(first=HalfCauchyNormal(0.8), second=HalfCauchyNormal(0.3)),
    "two horseshoes": mapped(first=Horseshoe(), second=Horseshoe(tau=0.5)),
}


def refused(way, prior):
    """Whether the engine says that it can't draw under this prior."""
    method = getattr(way, "method", "auto")
    priors = [prior] if not isinstance(prior, dict) else [*prior.values()]
    full = len(priors) < 2 and isinstance(prior, dict)
    full |= any(isinstance(each, MultivariateNormal) for each in priors)
    full |= any(isinstance(p, Hierarchical) and p.covariance == "full" for p in priors)
    walks = any(isinstance(each, RandomWalk) for each in priors)
    runs = any(isinstance(each, Horseshoe) for each in priors)
    return {
        "cholesky": walks,
        "woodbury": walks or full,
        "runs": walks or full or not runs,
    }.get(method, False)


# What a careless engine overlooks, and the rows of the table that show it; the second where an
# engine does not take the first.
FAULTS = {
    "the diagonal alone": ("normal and left out",),
    "groups apart": ("walk",),
    "scales of another theta": ("two half-Cauchy", "horseshoe and half-Cauchy"),
}
SHARP = {*sum(FAULTS.values(), ())}


def rounds(way, prior):
    """Enough for the broken twins in their rows, and for a gross fault in the others.

    A sweep of the exact likelihood or by exchange is informed by data more than by its prior, and
    trajectories that have not warmed up move less than draws from conditionals.
    """
    if prior not in SHARP:
        return 60
    return 250 if isinstance(WAYS.get(way), Gibbs) else 500


def checked(way, engine, prior, seed, monkeypatch):
    if "NCBAYES_TEST_FULL" not in os.environ:
        monkeypatch.setattr(testing, "ENGINE_LOOKS", {rounds(way, prior): 1.0})
    testing.check_engine(engine, PRIORS[prior], groups=2, seed=seed)


# Slices draw theta given the scales, as Gibbs sampling does: every other prior but in full runs.
PAIRS = [
    (way, prior)
    for way in WAYS
    for k, prior in enumerate(PRIORS)
    if way != "exact by slices" or k % 2 == 0 or "NCBAYES_TEST_FULL" in os.environ
]


@pytest.mark.parametrize(("way", "prior"), PAIRS)
def test_every_way_of_drawing_with_every_prior(way, prior, seed, monkeypatch):
    engine = WAYS[way]
    if refused(engine, PRIORS[prior]):
        with pytest.raises(ncb.InputError, match=f"method '{engine.method}' needs a"):
            checked(way, engine, prior, seed, monkeypatch)
    else:
        checked(way, engine, prior, seed, monkeypatch)


@pytest.mark.parametrize("way", COMPILED)
def test_nuts_with_every_prior(way, seed, monkeypatch):
    # Each of them is compiled, which takes seconds: every third one but in full runs.
    every = list(PRIORS) if "NCBAYES_TEST_FULL" in os.environ else list(PRIORS)[::3]
    for prior in every if way == "nuts" else ("walk", "walk and left out"):
        try:
            checked(way, COMPILED[way], prior, seed, monkeypatch)
        except AssertionError as error:
            raise AssertionError(f"{way} with {prior}: {error}") from error


def absent(public, rows):
    """The public names that no row of the table has."""
    return set(public) - {type(each).__name__ for each in rows}


def test_every_public_prior_and_engine_is_in_the_table():
    public = [name for name in ncb.priors.__all__ if isinstance(getattr(ncb.priors, name), type)]
    kinds = [worlds.LEFT_OUT if each is None else each for each in KINDS.values()]
    assert not absent(public, ALONE.values())
    assert not absent(public, kinds)
    assert absent(public, kinds[:-1]) == {"Horseshoe"}
    engines = [*WAYS.values(), *COMPILED.values()]
    assert not absent(ncb.engines.__all__, engines)
    assert absent(ncb.engines.__all__, engines[:-2]) == {"Nuts"}
    methods = {each.method for each in engines if isinstance(each, Gibbs)}
    offered = get_args(get_type_hints(Gibbs)["method"])
    flat = {name for each in offered for name in (get_args(each) or (each,))}
    assert methods == flat


@dataclass(frozen=True, eq=False)
class Misread:
    """A prior of which something is overlooked, by whichever of its forms an engine reads it."""

    inner: Any
    fault: str

    def gaussian(self, state, shape):
        precision, shift = self.inner.gaussian(state, shape)
        if self.fault == "the diagonal alone" and precision.within.ndim == 3:
            diagonal = np.einsum("gii->gi", precision.within)
            return Precision(diagonal, precision.between), shift
        if self.fault == "groups apart":
            return Precision(precision.within), shift
        return precision, shift

    def update(self, state, theta, rng):
        return self.inner.update(state, self._factor * theta, rng)

    def update_global(self, state, theta, rng):
        return self.inner.update_global(state, self._factor * theta, rng)

    def coordinates(self, shape):
        tells = getattr(self.inner, "coordinates", None)
        found = None if tells is None else tells(shape)
        if found is None:
            return None
        if self.fault == "groups apart":
            within = np.diagonal(np.linalg.inv(found.mix @ found.mix.T))
            found = replace(found, mix=np.diag(within**-0.5))
        return replace(found, factor=found.factor - np.log(self._factor))

    @property
    def _factor(self):
        return 4.0 if self.fault == "scales of another theta" else 1.0

    @property
    def parts(self):
        own = self.inner.parts
        return tuple(replace(part, prior=Misread(part.prior, self.fault)) for part in own)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@dataclass(frozen=True, eq=False)
class Careless:
    """An engine that misreads its prior."""

    engine: Any
    fault: str
    read: dict[int, Misread] = field(default_factory=dict)

    def step(self, target, draw, rng):
        prior = self.read.setdefault(id(target.prior), Misread(target.prior, self.fault))
        return self.engine.step(replace(target, prior=prior), draw, rng)

    def __getattr__(self, name):
        return getattr(self.engine, name)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", [*WAYS, "nuts"])
def test_a_careless_twin_of_every_way_is_rejected(way, fault, seed, monkeypatch):
    engine = {**WAYS, **COMPILED}[way]
    rows = [row for row in FAULTS[fault] if not refused(engine, PRIORS[row])]
    for row in rows[:1]:
        with pytest.raises(AssertionError, match=r"does not leave the \w+ posterior invariant"):
            checked(way, Careless(engine, fault), row, seed, monkeypatch)

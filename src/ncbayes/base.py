"""The vocabulary: what the parts of ncbayes are called, what they hold and what they promise.

Read this first. The paper's symbols and ours:

====================  ====================  ==================================================
paper                 here                  what it is
====================  ====================  ==================================================
eta(x)                ``statistics(x)``     sufficient statistics of a point, (n, p)
log h(x)              ``log_base(x)``       log base density, (n,)
theta                 ``theta``             natural parameters, (group, p)
beta = -log Z         ``c``                 the free log normalizer, last column of ``coef``
gamma = (theta,beta)  ``coef``              (group, coefficient), coefficient = p + 1
z(x) = (eta(x), 1)    ``design``            statistics and a column of ones, (N, p + 1)
C(x)                  ``offset``            log_base - log q + log n - log m, (N,)
s                     ``is_data``           True for data, False for noise, (N,)
psi                   ``log_odds``          design @ coef + offset, (N,)
omega                 ``weights``           Polya-Gamma weights, (N,)
n, m, nu = m / n      ``noise_ratio`` = nu  rows of data, rows of noise, their ratio
q                     ``Noise``             the noise distribution, normalized
B_0^-1, B_0^-1 A_0    ``Precision, shift``  the Gaussian prior of coef given its scales
====================  ====================  ==================================================

``log_density`` is always normalized; ``log_likelihood`` is that of the labels;
``log_odds`` is the logit that a pooled point is data.
Shapes are ``(chain, draw, group, coefficient)`` in results; points are rows, always 2-D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
State: TypeAlias = Mapping[str, FloatArray]
"""The scales of a prior: named arrays, nothing else, so that a checkpoint can hold them."""


class InputError(ValueError):
    """What the user passed is not usable; the message says what, what is allowed, what to do."""


def shown(value: object, most: int = 60) -> str:
    """What an error message shows of a value: its repr, on one line and cut if long.

    >>> shown([1] * 1000, most=12)
    '[1, 1, 1,...'
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if type(value).__repr__ is object.__repr__:
        return f"an object of class {type(value).__name__}"
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


@contextmanager
def in_group(label: object, groups: int = 2) -> Iterator[None]:
    """Errors in this block name the group, where there are several."""
    try:
        yield
    except InputError as error:
        if groups == 1:
            raise
        raise InputError(f"in group {shown(label)}: {error}") from error


@runtime_checkable
class Space(Protocol):
    """Where points live.

    Optional, for the Hyvarinen score: ``score_weight(x)``, weights (n, dimension) that vanish with
    x_j where the space ends and are 1 where it does not end, and their derivatives by x_j. For data
    of another form: ``from_objects(data)``, such data as rows, and any others as they are.
    ``continuous``: False where points have probabilities (counts, zeros and ones, graphs), True
    (taken if it is left out) where they have densities. ``periodic``: True where coordinates are
    angles, equal modulo 2 pi.
    """

    @property
    def dimension(self) -> int: ...

    @property
    def log_volume(self) -> float:
        """Log of the volume (of the number of points, if discrete); ``inf`` where unbounded."""
        ...

    def check(self, points: FloatArray, columns: Sequence[str]) -> FloatArray:
        """The finite (n, dimension) points, brought to canonical form, or an InputError."""
        ...

    def contains(self, points: FloatArray) -> BoolArray: ...

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray: ...


@runtime_checkable
class Model(Protocol):
    """An exponential family ``log p(x) = theta . statistics(x) + log_base(x) - log Z(theta)``.

    Optional powers, asked for by name when an engine or a read-out needs them:

    - ``design(x)``: a structured operator cheaper than the dense matrix
    - ``sample(theta, size, rng)`` and ``log_partition(theta)``
    - ``sweep(theta, x, rng)``: one Gibbs sweep of every row of x by the model's conditionals, which
      leaves the model at theta invariant; annealed noise needs it
    - ``path(theta, alpha)``: two parameters: where annealing begins, at which ``sample`` and
      ``log_partition`` are exact, and where the noise lies, alpha of the way to theta; without it
      they are 0 and alpha theta
    - ``guess(x)``: a quick estimate of theta, such as that of maximum pseudolikelihood; the first
      noise that is made from the model is made there
    - ``change_statistics(x, j)``, of binary models: statistics with coordinate j at its upper state
      less those at its lower one, (n, p); the pseudolikelihood needs it
    - ``score_statistics(x, j)``: first and second derivatives by coordinate j of the statistics
      and, in a last column, of log_base: two arrays (n, p + 1); the Hyvarinen engine needs it, for
      few rows at a time
    - ``check_data(x)``: an InputError where all rows together can't inform theta
    - ``concerns(theta, x)``: what is wrong with a fit of the points x, theta its mean, a line each
    - ``clusters``: for each statistic the number of the run of statistics that it belongs to, such
      as those of an edge, which stand side by side; grouped priors need it
    - of graphical models ``nodes`` (names), ``edges`` (pairs of names) and ``edge_columns`` (kind
      of edge statistic -> its columns, one an edge, anywhere among the statistics)

    A model whose log density is not linear in its parameters has ``curve(data, noise)`` (see
    ``Energy``), and only the NUTS engine fits it.
    """

    @property
    def space(self) -> Space: ...

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Names of the statistics by block, in column order."""
        ...

    def statistics(self, x: FloatArray) -> FloatArray: ...

    def log_base(self, x: FloatArray) -> FloatArray: ...


@runtime_checkable
class Noise(Protocol):
    """A distribution that can be drawn from and whose normalized density can be evaluated.

    An optional power of noise made from data, point by point: ``log_density_at_rows(x, rows)``,
    the log density at data x that each of x would have without itself, where the noise was made
    from the ``rows`` of the fit, among which x are; anywhere else the log density.
    """

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray: ...

    def log_density(self, x: FloatArray) -> FloatArray: ...


def log_density_at_rows(noise: Noise, x: FloatArray, rows: FloatArray) -> FloatArray:
    """Log density of the noise at data x, each without itself if the noise knows how."""
    knows = getattr(noise, "log_density_at_rows", None)
    return noise.log_density(x) if knows is None else np.asarray(knows(x, rows), dtype=float)


@dataclass(frozen=True)
class NoiseSet:
    """The noise of one group: its points, and log q there and at the data."""

    points: FloatArray
    log_density: FloatArray
    log_density_at_data: FloatArray


@dataclass(frozen=True)
class Precision:
    """The Gaussian prior's precision over coef (group, coefficient).

    ``within`` is its part inside a group: the diagonal (group, coefficient), or full blocks
    (group, coefficient, coefficient). ``between`` (group - 1, coefficient) holds the entries
    that couple a coefficient in one group with itself in the next; None: groups are independent.
    """

    within: FloatArray
    between: FloatArray | None = None


@runtime_checkable
class Prior(Protocol):
    """A prior of theta (group, p) that is Gaussian given its state."""

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> State:
        """A state from its own prior, for theta of this shape."""
        ...

    def gaussian(self, state: State, shape: tuple[int, int]) -> tuple[Precision, FloatArray]:
        """Precision and shift (precision @ mean) of theta given the state."""
        ...

    def update(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        """A Markov step that leaves the law of the state given theta invariant."""
        ...


@dataclass(frozen=True)
class Clusters:
    """Runs of coefficients, each with a local scale u, as an engine needs them.

    Run e holds the columns ``starts[e] : starts[e] + sizes[e]`` of coef. Given u > 0, of density
    ``2 / (pi (1 + u^2))``, they are independent normals of mean zero and precision
    ``slab[e] + 1 / (u multiplier[e])^2``. With ``fictitious[e]`` their joint density with u is
    ``N(coef; 0, (u multiplier)^2) exp(-slab coef^2 / 2)`` times that of u: the slab stands for an
    observation, and its normalizer is left out.
    """

    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]
    log_local: FloatArray
    """log u, (group, run)."""
    multiplier: FloatArray
    """inf: no local scale acts on this run."""
    slab: FloatArray
    fictitious: BoolArray


@runtime_checkable
class Shrinkage(Prior, Protocol):
    """A prior whose local scales an engine may draw together with their coefficients."""

    def clusters(self, state: State, shape: tuple[int, int]) -> Clusters: ...

    def relocated(self, state: State, log_local: FloatArray) -> State:
        """The state with other local scales."""
        ...

    def update_global(self, state: State, theta: FloatArray, rng: np.random.Generator) -> State:
        """A Markov step for the scales that leaves their law given theta invariant, cheap."""
        ...

    def rescaled(self, state: State, value: float) -> State:
        """The state with its global scale or, if that is fixed, every u at this value."""
        ...


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A prior of theta (group, column) in coordinates that are independent given log scales zeta.

    ``theta = mix y``, y (row, column), in cells: columns ``start`` to ``start + size`` of a
    ``row`` are normals of that ``mean`` and of the precision
    ``slab + exp(-2 (zeta_first + zeta_second + factor))``; -1 stands for no scale. With
    ``fictitious`` the slab is an observation, and has no part in the normalizer.
    Rows of one class have the same cells and mean zero. ``level``: a row that the likelihood hardly
    tells from the others, such as a common mean; -1 if there is none. Rows beyond the number of
    groups are the prior's own (``hidden``), and come last.
    ``kinds``: the priors of zeta. 0: exp(zeta) is half-Cauchy of scale exp(prior_a); 1: exp(2 zeta)
    is inverse gamma of shape prior_a and rate prior_b.
    ``wishart``: with the scale matrix S of an inverse Wishart prior, cells of single columns are
    of ``d_k - sum_j<k phi_kj d_j`` instead of the deviations d; phi are the last entries of zeta,
    of kind 2, row by row, and the rates of the variances are half of ``(T S T')_kk``, where T has
    -phi below a diagonal of ones.
    """

    mix: FloatArray
    classes: NDArray[np.intp]
    level: int
    mean: FloatArray
    row: NDArray[np.intp]
    start: NDArray[np.intp]
    size: NDArray[np.intp]
    slab: FloatArray
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    factor: FloatArray
    fictitious: BoolArray
    kinds: NDArray[np.intp]
    prior_a: FloatArray
    prior_b: FloatArray
    wishart: FloatArray | None = None


@runtime_checkable
class Scaled(Prior, Protocol):
    """A prior whose scales an engine may move together with theta.

    With rows of its own also ``hidden(state)``: their values.
    """

    def coordinates(self, shape: tuple[int, int]) -> Coordinates | None:
        """The coordinates of theta of this shape; None where it has none of this kind."""
        ...

    def log_scales(self, state: State) -> FloatArray:
        """The log scales of a state, (scale,)."""
        ...

    def at_log_scales(
        self, values: FloatArray, hidden: FloatArray, shape: tuple[int, int]
    ) -> State:
        """The state with log scales (..., scale) and rows of its own (..., entry), for many too."""
        ...


@dataclass(frozen=True)
class Draw:
    """A state of a chain: coef (group, coefficient), the prior's scales, facts about the sweep.

    ``memory`` is what an engine has to know in its next sweep besides, such as a step size: a
    checkpoint holds it, the posterior does not.
    """

    coef: FloatArray
    scales: State
    stats: Mapping[str, float] = field(default_factory=dict)
    memory: State = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """Consecutive draws of a chain: arrays (draw, ...), and the memory after the last."""

    coef: FloatArray
    scales: State
    stats: Mapping[str, NDArray[Any]]
    memory: State = field(default_factory=dict)

    @property
    def last(self) -> Draw:
        """The last draw."""
        scales = {name: values[-1] for name, values in self.scales.items()}
        stats = {name: values[-1].item() for name, values in self.stats.items()}
        return Draw(self.coef[-1], scales, stats, self.memory)


@runtime_checkable
class Design(Protocol):
    """A matrix (N, p) known by what it does; a structured one never has to be formed.

    An optional power, ``rows(start, stop)``, returns these columns as rows, (stop - start, N) in C
    order; without it sweeps by run take them from ``dense()``.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def matvec_flops(self) -> float:
        """Floating point operations of one ``matvec``; 2 N p if dense."""
        ...

    def matvec(self, coef: FloatArray) -> FloatArray: ...

    def rmatvec(self, values: FloatArray) -> FloatArray: ...

    def gram(self, weights: FloatArray) -> FloatArray:
        """``design' diag(weights) design``, (p, p)."""
        ...

    def gram_diagonal(self, weights: FloatArray) -> FloatArray: ...

    def dense(self) -> FloatArray:
        """The matrix itself, (N, p)."""
        ...


@dataclass(frozen=True)
class Segment:
    """A stretch of a chain on one noise set: sweeps to discard, then sweeps to keep."""

    noise_set: int
    tune: int
    draws: int


@dataclass(frozen=True)
class NoiseState:
    """The noise a chain is set against, one NoiseSet a group.

    ``index`` k >= 0: the run's own k-th set, which can be drawn again from the run's seed;
    -1: the chain's own, which a checkpoint has to hold.
    """

    sets: tuple[NoiseSet, ...]
    index: int


class NoiseSource(Protocol):
    """What a schedule may ask for: noise sets with their densities at the data worked out."""

    def fixed(self, index: int) -> NoiseState:
        """The run's ``index``-th noise set, the same in every chain."""
        ...

    def fresh(self, rng: np.random.Generator) -> NoiseState:
        """A new noise set from the chain's own random numbers."""
        ...


@runtime_checkable
class Schedule(Protocol):
    """When a chain changes its noise.

    With ``lasting = True`` it does so between segments only, and sweeps may be run in blocks;
    without it ``renew`` is asked before every sweep.
    """

    @property
    def noise(self) -> Noise | Mapping[str, Noise] | None: ...

    def plan(self, draws: int, tune: int, *, extends: bool = False) -> tuple[Segment, ...]: ...

    def renew(
        self,
        source: NoiseSource,
        noise: NoiseState | None,
        segment: Segment,
        rng: np.random.Generator,
    ) -> NoiseState:
        """The noise for the next sweep; the very same object if it does not change."""
        ...

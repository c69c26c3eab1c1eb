"""The paper's three simulated torus graphs (its section 5.3 and supplement), with their truth."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.datasets.arguments import Seed, check_count, check_flag, generator, is_finite_number
from ncbayes.models import TorusGraph
from ncbayes.spaces import TWO_PI, wrapped

CYCLE = ((0, 2), (0, 3), (1, 3), (1, 4), (2, 4))
CYCLE_COUPLING = (0.3, 0.3, 0.3, 0.3)
RANDOM_COUPLING = (0.3, 0.3, 0.0, 0.0)
# Uniform proposals at a time; about one in 44 becomes a row of the cycle.
BATCH = 16_384
# Each angle has amplitude 1.7 at most: the trapezoid rule leaves an error below exp(-100).
POINTS = 64

# The four couplings of each edge, by the numbers j < k of its nodes.
Links: TypeAlias = Mapping[tuple[int, int], Sequence[float]]


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated angles and what they were simulated from.

    ``data`` (n, node) in [0, 2 pi); ``model``, a torus graph with all pairs; ``theta``, its true
    natural parameters in the order of the model's columns; ``edges``, the pairs of nodes that
    truly interact; ``log_z``, the exact log normalizing constant where it is known, or None.
    """

    data: FloatArray
    model: TorusGraph
    theta: FloatArray
    edges: tuple[tuple[str, str], ...]
    log_z: float | None = None


def torus_chain(
    n: int = 200,
    nodes: int = 12,
    *,
    mean: float = math.pi / 6,
    concentration: float = 2.0,
    seed: Seed = None,
) -> Simulated:
    """A chain (section 5.3): ``x1 ~ vM(mean, k)``, ``xj ~ vM(x(j-1) + mean, k)``, independent rows.

    The normalizers of the conditionals do not depend on x, so the chain is a torus graph: with
    k the concentration, theta is ``k cos(mean), k sin(mean)`` for x1 and
    ``k cos(mean), -k sin(mean)`` for ``cos(x(j-1) - xj), sin(x(j-1) - xj)``, and
    ``log Z = nodes log(2 pi I0(k))``.

    >>> torus_chain(5, nodes=3, seed=1).edges
    (('x1', 'x2'), ('x2', 'x3'))
    """
    check_count("n", n, 1)
    check_count("nodes", nodes, 2)
    if not is_finite_number(mean):
        raise InputError(f"mean must be an angle in radians, got {shown(mean)}")
    if not is_finite_number(concentration) or concentration < 0:
        raise InputError(f"concentration must be a number, 0 or more, got {shown(concentration)}")
    rng, model = generator("seed", seed), TorusGraph(nodes)
    steps = rng.vonmises(mean, concentration, (n, nodes))
    a, b = concentration * math.cos(mean), concentration * math.sin(mean)
    links = {(j, j + 1): (a, -b, 0.0, 0.0) for j in range(nodes - 1)}
    theta = _theta(model, links)
    theta[:2] = a, b
    log_z = nodes * (math.log(TWO_PI * float(i0e(concentration))) + concentration)
    return _simulated(wrapped(np.cumsum(steps, axis=1)), model, theta, links, log_z)


def torus_cycle(n: int = 1000, *, seed: Seed = None) -> Simulated:
    """A cycle of five angles (supplement, scenario 1), couplings 0.3 throughout, independent rows.

    Rows are uniform points kept with probability ``exp(theta . statistics - bound)``, where
    ``bound`` adds up, over the edges, the amplitudes of ``xj - xk`` and ``xj + xk``: exact draws.

    >>> torus_cycle(5, seed=1).edges[:2]
    (('x1', 'x3'), ('x1', 'x4'))
    """
    check_count("n", n, 1)
    rng, model = generator("seed", seed), TorusGraph(5)
    links = dict.fromkeys(CYCLE, CYCLE_COUPLING)
    theta = _theta(model, links)
    data = _by_rejection(model, theta, _bound(links), n, rng)
    return _simulated(data, model, theta, links, _cycle_log_z())


def torus_random(
    n: int = 1000,
    nodes: int = 30,
    probability: float = 0.1,
    *,
    graph_seed: int = 1,
    tune: int = 2000,
    independent: bool = False,
    seed: Seed = None,
) -> Simulated:
    """A random graph (supplement, scenario 2): each pair is an edge with this probability.

    An edge has the couplings (0.3, 0.3, 0, 0). The graph depends on ``nodes``, ``probability`` and
    ``graph_seed`` only. As in the paper, rows are successive sweeps of one Gibbs chain from a
    uniform start, of which the first ``tune`` are discarded, so neighbouring rows are dependent;
    ``independent=True`` gives each row a chain of its own (``TorusGraph.sample``).

    >>> one, other = torus_random(5, seed=1), torus_random(5, nodes=30, seed=2)
    >>> one.edges == other.edges
    True
    """
    check_count("n", n, 1)
    check_count("nodes", nodes, 2)
    check_count("tune", tune, 0)
    check_flag("independent", independent)
    if not is_finite_number(probability) or not 0 <= probability <= 1:
        raise InputError(
            f"probability must be a number from 0 to 1, the chance of an edge, got "
            f"{shown(probability)}"
        )
    rng, model = generator("seed", seed), TorusGraph(nodes)
    first, second = model.pairs
    drawn = generator("graph_seed", graph_seed).random(len(first)) < probability
    ends = zip(first[drawn].tolist(), second[drawn].tolist(), strict=True)
    links = dict.fromkeys(ends, RANDOM_COUPLING)
    theta = _theta(model, links)
    if independent:
        return _simulated(model.sample(theta, n, rng), model, theta, links)
    data = _one_chain(_rotations(nodes, links), n, tune, rng)
    return _simulated(data, model, theta, links)


def _theta(model: TorusGraph, links: Links) -> FloatArray:
    """Theta of the whole graph: zero but for the four couplings of each link (j, k), j < k."""
    nodes = len(model.nodes)
    couplings = np.zeros((nodes, nodes, 4))
    for (j, k), coupling in links.items():
        couplings[j, k] = coupling
    return np.concatenate([np.zeros(2 * nodes), couplings[model.pairs].ravel()])


def _simulated(
    data: FloatArray,
    model: TorusGraph,
    theta: FloatArray,
    links: Links,
    log_z: float | None = None,
) -> Simulated:
    edges = tuple((model.nodes[j], model.nodes[k]) for j, k in links)
    return Simulated(data, model, theta, edges, log_z)


def _bound(links: Links) -> float:
    """What ``theta . statistics`` cannot exceed: all cosines and sines at their best at once."""
    return sum(math.hypot(a, b) + math.hypot(c, d) for a, b, c, d in links.values())


def _by_rejection(
    model: TorusGraph, theta: FloatArray, bound: float, n: int, rng: np.random.Generator
) -> FloatArray:
    kept: list[FloatArray] = []
    while sum(map(len, kept)) < n:
        x = model.space.uniform(BATCH, rng)
        log_chance = model.design(x).matvec(theta) - bound
        kept.append(x[np.log1p(-rng.random(BATCH)) < log_chance])
    return np.concatenate(kept)[:n]


def _cycle_log_z() -> float:
    """``log Z`` of the cycle: round it goes the trace of a product of the edges' kernels.

    The integrals over the angles become sums over a grid, which are exact up to rounding for
    functions as smooth as these.
    """
    x = TWO_PI * np.arange(POINTS) / POINTS
    statistics = TorusGraph(2, marginal=False).statistics(
        np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    )
    kernel = np.exp(statistics @ np.array(CYCLE_COUPLING)).reshape(POINTS, POINTS)
    # x1 - x3 - x5 - x2 - x4 - x1: an edge from a later to an earlier node is transposed.
    product = kernel @ kernel @ kernel.T @ kernel @ kernel.T
    return math.log(np.trace(product)) + 5 * math.log(TWO_PI / POINTS)


def _rotations(nodes: int, links: Links) -> NDArray[np.complex128]:
    """The Hermitian matrix H with ``theta . statistics = z' H conj(z) / 2`` for ``z = exp(i x)``,

    where links couple differences only: ``a cos(xj - xk) + b sin(xj - xk)`` is the real part of
    ``(a - i b) zj conj(zk)``.
    """
    matrix = np.zeros((nodes, nodes), dtype=np.complex128)
    for (j, k), (a, b, _, _) in links.items():
        matrix[j, k], matrix[k, j] = complex(a, -b), complex(a, b)
    return matrix


def _one_chain(
    matrix: NDArray[np.complex128],
    n: int,
    tune: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Successive Gibbs sweeps: given the others, xk is von Mises around the phase of its field."""
    nodes = len(matrix)
    x = rng.uniform(0.0, TWO_PI, nodes)
    z, kept = np.exp(1j * x), np.empty((n, nodes))
    # The field of node k is the sum over its neighbours j of H[j, k] zj.
    fields = list(matrix.T.copy())
    for sweep in range(tune + n):
        for k, row in enumerate(fields):
            field = complex(row @ z)
            x[k] = rng.vonmises(cmath.phase(field), abs(field))
            z[k] = cmath.rect(1.0, x[k])
        if sweep >= tune:
            kept[sweep - tune] = x
    return wrapped(kept)

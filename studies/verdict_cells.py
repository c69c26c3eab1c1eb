"""Models with data that are theirs, and with data that are not, for ``verdicts.py``.

A cell takes random numbers, simulates data, and returns the fit that is to be run, a function of
the options of ``ncbayes.fit``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes import models

Fit = Callable[..., Any]
Cell = Callable[[np.random.Generator], Fit]
RIGHT: dict[str, Cell] = {}
WRONG: dict[str, Cell] = {}
# Nodes and number of simulated graphs.
NODES, GRAPHS = 12, 20


def cell(table: dict[str, Cell], words: str) -> Callable[[Cell], Cell]:
    """Put a function into a table under these words."""

    def entered(make: Cell) -> Cell:
        table[words] = make
        return make

    return entered


def coupled_angles(nodes: int, rows: int, rng: np.random.Generator) -> Fit:
    """Fit of a torus graph with weak margins to its own rows, three pairs coupled by 1."""
    model = models.TorusGraph(nodes)
    theta = np.zeros(sum(map(len, model.groups.values())))
    theta[: 2 * nodes] = 0.3 * rng.normal(size=2 * nodes)
    differences = np.asarray(model.edge_columns["cos_minus"])
    theta[differences[[0, len(differences) // 2, -1]]] = 1.0
    return partial(ncb.fit, model, model.sample(theta, rows, rng))


def spins(nodes: int, rows: int, rng: np.random.Generator, **options: Any) -> Fit:
    """Fit of an Ising model to its own rows, three in ten pairs coupled."""
    model = models.Ising(nodes)
    pairs = nodes * (nodes - 1) // 2
    couplings = np.where(rng.random(pairs) < 0.3, rng.normal(size=pairs), 0.0)
    theta = np.append(0.5 * rng.normal(size=nodes), couplings)
    return partial(ncb.fit, model, model.sample(theta, rows, rng), **options)


def disturbed_angles(
    rng: np.random.Generator, kappa: float, share: float, rows: int, nodes: int
) -> np.ndarray:
    """Angles around a common one, both of concentration kappa, and a share of uniform rows."""
    common = rng.vonmises(0, kappa, rows)[:, None]
    x = common + rng.vonmises(0, kappa, (rows, nodes)) + np.linspace(-1, 1, nodes)
    uniform = int(rows * share)
    x[:uniform] = rng.uniform(0, 2 * np.pi, (uniform, nodes))
    return np.asarray(x % (2 * np.pi))


def basis() -> models.RadialBasis:
    """Sixteen bumps on a grid in the unit square."""
    at = np.linspace(0.125, 0.875, 4)
    centers = np.column_stack([each.ravel() for each in np.meshgrid(at, at)])
    return models.RadialBasis(centers, 0.5, ncb.spaces.Box([0.0, 0.0], [1.0, 1.0]))


def drawn_points(
    model: models.RadialBasis, theta: np.ndarray, rows: int, rng: np.random.Generator
) -> np.ndarray:
    """Points of the density at theta, by rejection from uniform ones."""
    fine = np.linspace(0, 1, 60)
    grid = np.column_stack([each.ravel() for each in np.meshgrid(fine, fine)])
    # Between the nodes of so fine a grid a density of these bumps hardly rises by a tenth.
    most = (model.statistics(np.vstack([grid, model.table])) @ theta).max() + 0.1
    kept = np.zeros((0, 2))
    while len(kept) < rows:
        x = rng.random((20 * rows, 2))
        values = model.statistics(x) @ theta
        kept = np.vstack([kept, x[np.log(rng.random(len(x))) < values - most]])
    return kept[:rows]


@cache
def gaussian_energy() -> ncb.Energy:
    """Two independent normals of one precision, as an energy."""

    def log_density(parameters: Any, x: Any) -> Any:
        return -0.5 * parameters["rate"] * ((x - parameters["mean"]) ** 2).sum(1)

    mean = ncb.energies.Real(ncb.priors.Normal(5.0), shape=(2,))
    return ncb.Energy(
        log_density, {"mean": mean, "rate": ncb.energies.Positive(1.0)}, ncb.spaces.Reals(2)
    )


def graph_fit(chances: np.ndarray, rng: np.random.Generator) -> Fit:
    """Fit of Bernoulli graphs to graphs whose dyads have chances of their own (node, node)."""
    dyads = chances[np.triu_indices(NODES, 1)]
    data = (rng.random((GRAPHS, len(dyads))) < dyads).astype(float)
    return partial(ncb.fit, models.ERGM(NODES, [models.terms.edges()]), data)


@cell(RIGHT, "one angle")
def _angle(rng: Any) -> Fit:
    model = models.VonMises()
    return partial(ncb.fit, model, model.sample(np.array([1.2, 0.4]), 150, rng))


@cell(RIGHT, "5 angles")
def _angles(rng: Any) -> Fit:
    return coupled_angles(5, 200, rng)


@cell(RIGHT, "8 binary columns")
def _binary(rng: Any) -> Fit:
    return spins(8, 200, rng)


@cell(RIGHT, "3 counts")
def _counts(rng: Any) -> Fit:
    data = rng.poisson(rng.uniform(1, 4, 3), (200, 3)).astype(float)
    return partial(ncb.fit, models.ConwayMaxwell(3, most=20), data)


@cell(RIGHT, "a positive number")
def _gamma(rng: Any) -> Fit:
    return partial(ncb.fit, models.Gamma(), rng.gamma(2.0, 1.5, (150, 1)))


@cell(RIGHT, "3 positive numbers")
def _truncated(rng: Any) -> Fit:
    covariance = [[1, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 1]]
    x = rng.multivariate_normal([0.5, 0.5, 0.5], covariance, 4000)
    return partial(ncb.fit, models.TruncatedGaussian(3), x[(x > 0).all(axis=1)][:200])


@cell(RIGHT, "3 reals")
def _reals(rng: Any) -> Fit:
    covariance = [[1, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 1]]
    return partial(ncb.fit, models.Gaussian(3), rng.multivariate_normal([0, 1, 2], covariance, 200))


@cell(RIGHT, "20 graphs")
def _graphs(rng: Any) -> Fit:
    model = models.ERGM(NODES, [models.terms.edges(), models.terms.gwesp(0.5)])
    return partial(ncb.fit, model, model.sample(np.array([-2.0, 0.4]), GRAPHS, rng))


@cell(RIGHT, "a density")
def _density(rng: Any) -> Fit:
    model = basis()
    theta = 2.0 * rng.normal(size=len(model.table))
    return partial(ncb.fit, model, drawn_points(model, theta, 300, rng))


@cell(RIGHT, "an energy")
def _energy(rng: Any) -> Fit:
    return partial(ncb.fit, gaussian_energy(), rng.normal(size=(200, 2)))


@cell(RIGHT, "5 angles, 30 rows")
def _few_rows(rng: Any) -> Fit:
    return coupled_angles(5, 30, rng)


@cell(RIGHT, "8 angles, 60 rows")
def _wide(rng: Any) -> Fit:
    return coupled_angles(8, 60, rng)


@cell(RIGHT, "one angle, 6 groups of 20 to 200 rows")
def _groups(rng: Any) -> Fit:
    model, sizes = models.VonMises(), (20, 40, 60, 100, 150, 200)
    data = {f"group {n}": model.sample(rng.normal(size=2), n, rng) for n in sizes}
    return partial(ncb.fit, model, data)


@cell(RIGHT, "15 binary columns, 100 rows")
def _many_spins(rng: Any) -> Fit:
    return spins(15, 100, rng)


@cell(RIGHT, "15 binary columns, 100 rows, horseshoe")
def _sparse_spins(rng: Any) -> Fit:
    return spins(15, 100, rng, prior={"edge": ncb.priors.Horseshoe()})


@cell(RIGHT, "a density at 3 times, its own centers")
def _over_time(rng: Any) -> Fit:
    model = basis()
    walk = np.cumsum(0.5 * rng.normal(size=(3, len(model.table))), axis=0)
    thetas = 2.0 * rng.normal(size=len(model.table)) + walk
    points = np.vstack([drawn_points(model, theta, 150, rng) for theta in thetas])
    times = np.repeat(np.arange(3.0), 150)
    return partial(ncb.fit_density_over_time, points, times, domain=model.space)


@cell(WRONG, "an angle on two opposite sides")
def _two_sides(rng: Any) -> Fit:
    x = rng.vonmises(0.4, 4, (150, 1)) + np.pi * (rng.random((150, 1)) < 0.5)
    return partial(ncb.fit, models.VonMises(), x % (2 * np.pi))


@cell(WRONG, "5 angles, a difference at 0 and pi")
def _two_differences(rng: Any) -> Fit:
    x = rng.uniform(0, 2 * np.pi, (200, 5))
    x[:, 1] = x[:, 0] + rng.vonmises(0, 4, 200) + np.pi * (rng.random(200) < 0.5)
    return partial(ncb.fit, models.TorusGraph(5), x % (2 * np.pi))


@cell(WRONG, "4 concentrated angles, a tenth of the rows uniform")
def _uniform_rows(rng: Any) -> Fit:
    return partial(ncb.fit, models.TorusGraph(4), disturbed_angles(rng, 8, 0.1, 200, 4))


@cell(WRONG, "6 binary columns, a fifth of the rows all zero")
def _zero_rows(rng: Any) -> Fit:
    model = models.Ising(6)
    theta = np.append(0.5 * rng.normal(size=6), np.where(np.arange(15) % 3, 0.0, 0.8))
    x = model.sample(theta, 200, rng)
    x[:40] = 0
    return partial(ncb.fit, model, x)


@cell(WRONG, "5 binary columns, x3 = x1 xor x2 but for 15 %")
def _xor(rng: Any) -> Fit:
    x = (rng.random((200, 5)) < 0.5).astype(float)
    x[:, 2] = (x[:, 0] + x[:, 1] + (rng.random(200) < 0.15)) % 2
    return partial(ncb.fit, models.Ising(5), x)


@cell(WRONG, "2 counts, a fifth zeros more")
def _more_zeros(rng: Any) -> Fit:
    x = rng.poisson(4.0, (200, 2)) * (rng.random((200, 2)) > 0.2)
    return partial(ncb.fit, models.ConwayMaxwell(2, most=30), x.astype(float))


@cell(WRONG, "2 counts, negative binomial of shape 0.4")
def _overdispersed(rng: Any) -> Fit:
    x = rng.negative_binomial(0.4, 0.4 / 4.4, (2000, 2))
    x = x[(x <= 60).all(axis=1)][:200]
    return partial(ncb.fit, models.ConwayMaxwell(2, most=60), x.astype(float))


@cell(WRONG, "lognormal as gamma")
def _lognormal(rng: Any) -> Fit:
    return partial(ncb.fit, models.Gamma(), rng.lognormal(0, 1, (150, 1)))


@cell(WRONG, "two clusters as a truncated Gaussian")
def _clusters(rng: Any) -> Fit:
    x = np.abs(rng.normal(size=(200, 2)) * 0.5 + np.where(rng.random((200, 1)) < 0.5, 1.0, 3.0))
    return partial(ncb.fit, models.TruncatedGaussian(2), x)


@cell(WRONG, "t with 2.5 degrees as Gaussian")
def _heavy(rng: Any) -> Fit:
    return partial(ncb.fit, models.Gaussian(3), rng.standard_t(2.5, (200, 3)))


@cell(WRONG, "a ring as Gaussian")
def _ring(rng: Any) -> Fit:
    at = rng.uniform(0, 2 * np.pi, 200)
    x = np.column_stack([np.cos(at), np.sin(at)]) + 0.1 * rng.normal(size=(200, 2))
    return partial(ncb.fit, models.Gaussian(2), x)


@cell(WRONG, "graphs of two blocks as Bernoulli graphs")
def _blocks(rng: Any) -> Fit:
    side = np.arange(NODES) < NODES // 2
    return graph_fit(np.where(side[:, None] == side, 0.5, 0.1), rng)


@cell(WRONG, "stars as Bernoulli graphs")
def _stars(rng: Any) -> Fit:
    chances = np.full((NODES, NODES), 0.1)
    chances[0] = 0.7
    return graph_fit(chances, rng)


@cell(WRONG, "a tenth of the points in a spike, 10 bumps")
def _spike(rng: Any) -> Fit:
    x = rng.beta(2, 2, (300, 2))
    x[:30] = 0.3 + 0.005 * rng.normal(size=(30, 2))
    model = models.RadialBasis.match(x, ncb.spaces.Box([0.0, 0.0], [1.0, 1.0]), basis=10)
    return partial(ncb.fit, model, x)


@cell(WRONG, "points on a ring, 10 bumps")
def _ring_of_points(rng: Any) -> Fit:
    at = rng.uniform(0, 2 * np.pi, 300)
    ring = 0.5 + 0.35 * np.column_stack([np.cos(at), np.sin(at)])
    x = ring + 0.01 * rng.normal(size=(300, 2))
    model = models.RadialBasis.match(x, ncb.spaces.Box([0.0, 0.0], [1.0, 1.0]), basis=10)
    return partial(ncb.fit, model, x)


@cell(WRONG, "t with 2.5 degrees as a Gaussian energy")
def _heavy_energy(rng: Any) -> Fit:
    return partial(ncb.fit, gaussian_energy(), rng.standard_t(2.5, (200, 2)))

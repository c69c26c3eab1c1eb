"""Do 90 % intervals hold 90 %? Coverage at the defaults, by family, size and prior.

    python studies/calibration.py [--cells WORDS ...] [--replications 200] [--keep rows.jsonl]

Every data set is simulated with known parameters and fitted at the defaults of ``fit`` (two chains
of 500 + 1000). With the priors normal, hierarchical and random walk the truth is drawn from the
prior itself, so that exact intervals hold 90 % of them; what is missing is the contrast's doing.
Under a horseshoe some couplings are zero and others are not, which no draw from that prior shows:
there exact intervals, where they are known, stand beside ours, and zero and nonzero couplings
apart, with two things that may help: intervals given that there is an edge
(``graphs.edges(conditional=True)``) and a normal prior of sd 1, which hardly shrinks. Of densities
the points are where the truth has them, the intervals those of ``densities.density``.

A longer run continues a shorter one. ``held``: the share of intervals that hold the truth, with its
standard error over data sets; ``log Z`` against its value at the true parameters; ``width``: sds
by those of the exact posterior.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.couplings import couplings
from ncbayes.noise.model_part import drawn
from ncbayes_paper.kept import cells

LEVEL = 0.9
# Where a density is looked at, by time; and the largest value of _height.
PLACES, TALLEST = 60, 4.3
models, priors = ncb.models, ncb.priors


@dataclass(frozen=True)
class Case:
    """A data set: ``theta`` (group, p) is the truth, ``kinds`` (p,) the kind of each parameter."""

    model: Any
    data: Any
    prior: Any
    theta: np.ndarray
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Points:
    """Points over time in ``domain``, and by time places with the true density there."""

    points: np.ndarray
    times: np.ndarray
    domain: Any
    places: list[np.ndarray]
    density: list[np.ndarray]
    basis: int = 30


Maker = Callable[[np.random.Generator], "Case | Points"]


def normal(model: Any, n: int, scale: float | dict[str, float]) -> Maker:
    """Parameters drawn from their normal prior, of one scale or of one for every block."""
    scales = scale if isinstance(scale, dict) else dict.fromkeys(model.groups, scale)
    wide = np.concatenate([np.full(len(model.groups[name]), scales[name]) for name in model.groups])
    prior = {name: priors.Normal(each) for name, each in scales.items()}

    def made(rng: np.random.Generator) -> Case:
        theta = rng.normal(0, wide)
        while not np.isfinite(_exact_log_z(model, theta) or 0.0):
            theta = rng.normal(0, wide)  # no density has such a theta
        return Case(model, model.sample(theta, n, rng), prior, theta[None])

    return made


def _exact_log_z(model: Any, theta: np.ndarray) -> float | None:
    """None where it is too large a sum."""
    try:
        return float(model.log_partition(theta))
    except ncb.InputError:
        return None


def sparse(model: Any, n: int, start: Sequence[float], sizes: Sequence[float]) -> Maker:
    """Three of ten couplings are not zero; the default prior, a horseshoe on edges.

    ``start``: what comes before the edges, by kinds of statistics, each the same for all nodes.
    """

    def made(rng: np.random.Generator) -> Case:
        total = sum(map(len, model.groups.values()))
        edges = np.sort(np.concatenate([np.ravel(c) for c in model.edge_columns.values()]))
        theta, kinds = np.zeros(total), np.full(total, "field", dtype=object)
        theta[: total - len(edges)] = np.repeat(start, len(model.nodes))
        lead = np.asarray(next(iter(model.edge_columns.values())))
        chosen = rng.permutation(lead)[: round(0.3 * len(lead))]
        theta[edges], kinds[edges] = 0.0, "zero"
        theta[chosen] = np.resize(sizes, len(chosen))
        kinds[chosen] = [f"of size {abs(each):g}" for each in theta[chosen]]
        return Case(model, model.sample(theta, n, rng), None, theta[None], tuple(kinds))

    return made


def population(rows: Sequence[int]) -> Maker:
    """Angles of groups of uneven sizes, drawn from a population of known spread."""

    def made(rng: np.random.Generator) -> Case:
        model, mean = models.VonMises(), rng.normal(0, 0.7, 2)
        theta = mean + rng.normal(0, 0.5, (len(rows), 2))
        data = {
            str(g): model.sample(t, n, rng)
            for g, (t, n) in enumerate(zip(theta, rows, strict=True))
        }
        return Case(model, data, priors.Hierarchical(covariance="diagonal"), theta)

    return made


def walk(times: int, n: int) -> Maker:
    """Angles whose parameters walk in steps of known size."""

    def made(rng: np.random.Generator) -> Case:
        model = models.VonMises()
        theta = np.cumsum(rng.normal(0, [[0.8]] + [[0.2]] * (times - 1), (times, 2)), axis=0)
        data = {str(t): model.sample(row, n, rng) for t, row in enumerate(theta)}
        return Case(model, data, priors.RandomWalk(), theta)

    return made


def bumps(domain: Any, rows: Sequence[int], moves: float, basis: int = 30) -> Maker:
    """Two bumps on even ground, one of which moves: a density of no family of ours."""

    def made(rng: np.random.Generator) -> Points:
        points, times, places, values = [], [], [], []
        for time, n in enumerate(rows):
            height = partial(_height, shift=moves * time)
            mean = height(domain.uniform(100_000, rng)).mean()
            rising = np.zeros((0, domain.dimension))
            while len(rising) < n + PLACES:
                x = domain.uniform(10_000, rng)
                rising = np.vstack([rising, x[rng.random(len(x)) * TALLEST < height(x)]])
            points.append(rising[:n])
            times.append(np.full(n, float(time)))
            places.append(rising[n : n + PLACES])
            values.append(height(places[-1]) / mean / np.exp(domain.log_volume))
        return Points(np.concatenate(points), np.concatenate(times), domain, places, values, basis)

    return made


def _height(x: np.ndarray, shift: float) -> np.ndarray:
    """Of the density, but for a factor; at most TALLEST."""
    centers = np.full((2, x.shape[1]), [[0.3], [0.6]])
    centers[1, 0] += shift
    far = ((x[:, None] - centers) ** 2).sum(axis=2)
    return np.asarray(0.3 + 2 * np.exp(-far / (2 * 0.1**2)).sum(axis=1))


def outline() -> Any:
    """A unit square without its upper right corner, and with a hole."""
    corners = [[0, 0], [1, 0], [1, 0.6], [0.6, 1], [0, 1]]
    hole = [[0.05, 0.6], [0.2, 0.6], [0.2, 0.8], [0.05, 0.8]]
    return ncb.spaces.Region((np.array(corners, dtype=float), np.array(hole)))


LINE, SQUARE = ncb.spaces.Box([0.0], [1.0]), ncb.spaces.Box([0.0, 0.0], [1.0, 1.0])
GRAPHS = models.ERGM(8, ["edges", models.terms.gwesp(0.5)])
UNEVEN = (10, 10, 20, 20, 50, 50, 100, 200)
WEAK, STRONG = 0.25, 1.0
CELLS: dict[str, Maker] = {
    "von Mises, n = 20, normal": normal(models.VonMises(), 20, 1.5),
    "von Mises, n = 300, normal": normal(models.VonMises(), 300, 1.5),
    "gamma, n = 20, normal": normal(models.Gamma(), 20, 3.0),
    "gamma, n = 300, normal": normal(models.Gamma(), 300, 3.0),
    "Ising 4, n = 60, normal": normal(models.Ising(4), 60, 0.7),
    "Ising 6, n = 25, normal": normal(models.Ising(6), 25, 0.7),
    "Ising 6, n = 400, normal": normal(models.Ising(6), 400, 0.7),
    "Ising 6, n = 60, two blocks": normal(models.Ising(6), 60, {"field": 1.0, "edge": 0.4}),
    "torus graph 3, n = 50, normal": normal(models.TorusGraph(3), 50, 0.4),
    "torus graph 3, n = 400, normal": normal(models.TorusGraph(3), 400, 0.4),
    "graphs of 8 nodes, n = 20, normal": normal(GRAPHS, 20, {"edges": 0.7, "gwesp": 0.3}),
    "graphs of 8 nodes, n = 200, normal": normal(GRAPHS, 200, {"edges": 0.7, "gwesp": 0.3}),
    "Ising 8, n = 50, horseshoe": sparse(models.Ising(8), 50, (-0.3,), (WEAK, -STRONG)),
    "Ising 8, n = 500, horseshoe": sparse(models.Ising(8), 500, (-0.3,), (WEAK, -STRONG)),
    "torus graph 5, n = 60, horseshoe": sparse(models.TorusGraph(5), 60, (0, 0), (WEAK, STRONG)),
    "torus graph 5, n = 300, horseshoe": sparse(models.TorusGraph(5), 300, (0, 0), (WEAK, STRONG)),
    "counts 4, n = 50, horseshoe": sparse(
        models.ConwayMaxwell(4, most=30), 50, (1.2, 1.0), (-0.15, -0.3)
    ),
    "counts 4, n = 400, horseshoe": sparse(
        models.ConwayMaxwell(4, most=30), 400, (1.2, 1.0), (-0.15, -0.3)
    ),
    "truncated Gaussian 4, n = 60, horseshoe": sparse(
        models.TruncatedGaussian(4), 60, (0.5, 1.0), (WEAK, 0.7)
    ),
    "truncated Gaussian 4, n = 400, horseshoe": sparse(
        models.TruncatedGaussian(4), 400, (0.5, 1.0), (WEAK, 0.7)
    ),
    "von Mises, 8 groups of 10 to 200, hierarchical": population(UNEVEN),
    "von Mises, 20 groups of 30, hierarchical": population((30,) * 20),
    "von Mises, 10 times of 20, random walk": walk(10, 20),
    "von Mises, 10 times of 100, random walk": walk(10, 100),
    "density, line, 5 times of 100": bumps(LINE, (100,) * 5, 0.05),
    "density, line, 5 times of 400, none in the third": bumps(LINE, (400, 400, 0, 400, 400), 0.05),
    "density, square, 3 times of 300": bumps(SQUARE, (300,) * 3, 0.05),
    "density, square, 3 times of 300, 100 functions": bumps(SQUARE, (300,) * 3, 0.05, basis=100),
    "density, outline with a hole, 3 times of 300": bumps(outline(), (300,) * 3, 0.05),
}
EXACT = ("Ising", "von Mises, n", "gamma")
OPTIONS: dict[str, Any] = {
    "draws": 1000, "tune": 500, "chains": 2, "cores": 1, "progress": False,
}  # fmt: skip


def measured(cell: str, seed: int) -> dict[str, Any]:
    """Of one data set: shares held by kind, whether log Z is held, widths, and the grade."""
    case = CELLS[cell](np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        try:
            return _density(case, seed) if isinstance(case, Points) else _theta(cell, case, seed)
        except ncb.InputError as refused:
            return {"refused": str(refused)}


def _density(case: Points, seed: int) -> dict[str, Any]:
    found = ncb.fit_density_over_time(
        case.points, case.times, domain=case.domain, every=1.0, basis=case.basis, seed=seed,
        **OPTIONS,
    )  # fmt: skip
    held: dict[str, list[float]] = {}
    for time, (at, truth) in enumerate(zip(case.places, case.density, strict=True)):
        bands = ncb.densities.density(found, at, level=LEVEL).isel(time=time)
        inside = (bands["low"].to_numpy() <= truth) & (truth <= bands["high"].to_numpy())
        # The two halves of a time's places, by density.
        high = truth >= np.median(truth)
        halves = {"in bumps": high, "around them": ~high}
        if time not in case.times:
            halves = {"time without points": np.ones(len(truth), dtype=bool)}
        for kind, some in halves.items():
            before = held.get(kind, [0.0, 0])
            held[kind] = [before[0] + float(inside[some].sum()), before[1] + int(some.sum())]
    return {"grade": found.data.attrs["grade"], "held": held}


def _theta(cell: str, case: Case, seed: int) -> dict[str, Any]:
    def fit(prior: Any = case.prior, **others: Any) -> ncb.Posterior:
        return ncb.fit(case.model, case.data, prior=prior, seed=seed, **{**OPTIONS, **others})

    found = fit()
    row: dict[str, Any] = {"grade": found.data.attrs["grade"]}
    row["held"] = _held(found.theta.to_numpy(), case)
    row["log_z"] = _log_z_held(found, case, seed)
    if cell.startswith(EXACT):
        exact = fit(engine="exact", verify=False)
        row["exact"] = _held(exact.theta.to_numpy(), case)
        draws = ("chain", "draw")
        row["width"] = float((found.theta.std(draws) / exact.theta.std(draws)).mean())
    if "horseshoe" in cell:
        row["given"] = _given(found, case)
        row["normal"] = _held(fit(priors.Normal(1.0), verify=False).theta.to_numpy(), case)
    return row


def _given(found: ncb.Posterior, case: Case) -> dict[str, list[float]]:
    """As _held, of the couplings that are not zero, given that there is an edge."""
    table = ncb.graphs.edges(found, conditional=True, level=LEVEL)
    kind, lead = next(iter(case.model.edge_columns.items()))
    held: dict[str, list[float]] = {}
    pairs = couplings(found.data, None).graph.edges
    ends = table.set_index(["node1", "node2"])[[f"{kind}_low", f"{kind}_high"]]
    for pair, column in zip(pairs, np.asarray(lead), strict=True):
        low, high = ends.loc[pair]
        if case.theta[0, column] != 0:
            before = held.get(case.kinds[column], [0.0, 0])
            inside = float(low <= case.theta[0, column] <= high)
            held[case.kinds[column]] = [before[0] + inside, before[1] + 1]
    return held


def _held(theta: np.ndarray, case: Case) -> dict[str, list[float]]:
    """By kind, how many intervals hold the truth, and how many there are."""
    low, high = np.quantile(theta, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=(0, 1))
    inside = (low <= case.theta) & (case.theta <= high)
    kinds = np.broadcast_to(case.kinds or ("all",) * case.theta.shape[1], case.theta.shape)
    return {
        str(kind): [float(inside[kinds == kind].sum()), int((kinds == kind).sum())]
        for kind in dict.fromkeys(kinds.ravel())
    }


def _log_z_held(found: ncb.Posterior, case: Case, seed: int) -> list[float]:
    """How many intervals of log Z hold log Z at the true parameters, and how many there are."""
    rng, held = np.random.default_rng(seed), 0
    groups = case.data.values() if isinstance(case.data, dict) else [case.data]
    for g, (theta, rows) in enumerate(zip(case.theta, groups, strict=True)):
        points = ncb.spaces.as_points(rows, case.model.space, "calibration")
        truth = _exact_log_z(case.model, theta)
        if truth is None:
            truth = drawn(case.model, theta, points, None, rng).log_z
        draws = found.log_z.to_numpy()[:, :, g]
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        held += bool(low <= truth <= high)
    return [float(held), len(case.theta)]


def table(done: dict[tuple[Any, ...], Any]) -> str:
    """Markdown."""
    lines = ["| cell | data sets | what | held | exact | given an edge | normal prior | log Z | "
             "width | poor or failed |", "|---" * 10 + "|"]  # fmt: skip
    for cell in CELLS:
        all_rows = [row for place, row in done.items() if place[0] == cell]
        rows = [row for row in all_rows if "held" in row]
        refused = len(all_rows) - len(rows)
        bad = sum(row["grade"] in ("poor", "failed") for row in rows)
        width = [row["width"] for row in rows if "width" in row]
        for kind in dict.fromkeys(kind for row in rows for kind in row["held"]):
            shares = [
                _share([row.get(name, {}) for row in rows], kind)
                for name in ("held", "exact", "given", "normal")
            ]
            texts = [
                cell,
                f"{len(rows)}" + (f" ({refused} refused)" if refused else ""),
                kind,
                *shares,
                _share([{kind: row["log_z"]} for row in rows if "log_z" in row], kind),
                f"{np.mean(width):.3f}" if width else "",
                f"{bad}",
            ]
            lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _share(rows: Sequence[dict[str, Any]], kind: str) -> str:
    """The share held over all data sets, with its standard error between them."""
    counts = np.array([row[kind] for row in rows if kind in row and row[kind][1]])
    if not len(counts):
        return ""
    share = counts[:, 0].sum() / counts[:, 1].sum()
    off = counts[:, 0] - share * counts[:, 1]
    return f"{share:.3f} ({np.sqrt(np.sum(off**2)) / counts[:, 1].sum():.3f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    print(table(cells(measured, CELLS, 200, __doc__.splitlines()[0], arguments)))


if __name__ == "__main__":
    main()

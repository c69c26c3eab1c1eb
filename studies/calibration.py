"""Do 90 % intervals hold 90 %? Coverage at the defaults, by family, size and prior.

    python studies/calibration.py [--cells WORDS ...] [--replications 200] [--keep rows.jsonl]

Every data set is simulated with known parameters and fitted at the defaults of ``fit`` (two chains
of 500 + 1000). With the priors normal, hierarchical and random walk the truth is drawn from the
prior itself, so that exact intervals hold 90 % of them; what is missing is the contrast's doing.
Under a horseshoe some couplings are zero and others are not, which no draw from that prior shows:
there exact intervals, where they are known, stand beside ours, and zero and nonzero couplings
apart. A longer run continues a shorter one. ``held``: the share of intervals that hold the truth,
with its standard error over data sets; ``log Z`` against its value at the true parameters;
``width``: sds by those of the exact posterior.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes.noise.model_part import drawn
from ncbayes_paper.kept import cells

LEVEL = 0.9
models, priors = ncb.models, ncb.priors


@dataclass(frozen=True)
class Case:
    """A data set: ``theta`` (group, p) is the truth, ``kinds`` (p,) the kind of each parameter."""

    model: Any
    data: Any
    prior: Any
    theta: np.ndarray
    kinds: tuple[str, ...] = ()


Maker = Callable[[np.random.Generator], Case]


def normal(model: Any, n: int, scale: Any) -> Maker:
    """Parameters drawn from their normal prior."""

    def made(rng: np.random.Generator) -> Case:
        size = sum(map(len, model.groups.values()))
        theta = rng.normal(0, 1, size) * scale
        return Case(model, model.sample(theta, n, rng), priors.Normal(scale), theta[None])

    return made


def sparse(model: Any, n: int, field: float, size: float, share: float) -> Maker:
    """Most couplings are zero; the default prior, a horseshoe on edges."""

    def made(rng: np.random.Generator) -> Case:
        total = sum(map(len, model.groups.values()))
        edges = np.sort(np.concatenate([np.ravel(c) for c in model.edge_columns.values()]))
        theta, kinds = np.full(total, field), np.full(total, "field", dtype=object)
        if isinstance(model, models.TorusGraph):
            theta[:] = 0.0
        lead = np.asarray(next(iter(model.edge_columns.values())))
        chosen = lead[rng.random(len(lead)) < share]
        theta[edges], kinds[edges] = 0.0, "zero"
        theta[chosen] = size * rng.choice([-1.0, 1.0], len(chosen))
        kinds[chosen] = "nonzero"
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


CELLS: dict[str, Maker] = {
    "von Mises, n = 20, normal": normal(models.VonMises(), 20, 1.5),
    "von Mises, n = 300, normal": normal(models.VonMises(), 300, 1.5),
    "Ising 4, n = 60, normal": normal(models.Ising(4), 60, 0.7),
    "Ising 6, n = 25, normal": normal(models.Ising(6), 25, 0.7),
    "Ising 6, n = 400, normal": normal(models.Ising(6), 400, 0.7),
    "torus graph 3, n = 50, normal": normal(models.TorusGraph(3), 50, 0.4),
    "torus graph 3, n = 400, normal": normal(models.TorusGraph(3), 400, 0.4),
    "graphs of 8 nodes, n = 20, normal": normal(
        models.ERGM(8, ["edges", models.terms.gwesp(0.5)]), 20, np.array([0.7, 0.3])
    ),
    "Ising 8, n = 50, horseshoe": sparse(models.Ising(8), 50, -0.3, 1.0, 0.25),
    "Ising 8, n = 500, horseshoe": sparse(models.Ising(8), 500, -0.3, 1.0, 0.25),
    "torus graph 5, n = 60, horseshoe": sparse(models.TorusGraph(5), 60, 0.0, 0.7, 0.3),
    "torus graph 5, n = 300, horseshoe": sparse(models.TorusGraph(5), 300, 0.0, 0.7, 0.3),
    "von Mises, 8 groups of 10 to 200, hierarchical": population(
        (10, 10, 20, 20, 50, 50, 100, 200)
    ),
    "von Mises, 10 times of 20, random walk": walk(10, 20),
    "von Mises, 10 times of 100, random walk": walk(10, 100),
}
EXACT = ("Ising", "von Mises, n")


def measured(cell: str, seed: int) -> dict[str, Any]:
    """Of one data set: shares held by kind, whether log Z is held, widths, and the grade."""
    case = CELLS[cell](np.random.default_rng(seed))
    options = {"draws": 1000, "tune": 500, "chains": 2, "cores": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        try:
            found = ncb.fit(case.model, case.data, prior=case.prior, seed=seed, **options)
        except ncb.InputError as refused:
            return {"refused": str(refused)}
        row: dict[str, Any] = {"grade": found.data.attrs["grade"]}
        row["held"] = _held(found.theta.to_numpy(), case)
        row["log_z"] = _log_z_held(found, case, seed)
        if cell.startswith(EXACT):
            exact = ncb.fit(
                case.model, case.data, prior=case.prior, seed=seed, engine="exact", verify=False,
                **options,
            )  # fmt: skip
            row["exact"] = _held(exact.theta.to_numpy(), case)
            draws = ("chain", "draw")
            row["width"] = float((found.theta.std(draws) / exact.theta.std(draws)).mean())
    return row


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
        known = getattr(case.model, "log_partition", None)
        points = ncb.spaces.as_points(rows, case.model.space, "calibration")
        truth = known(theta) if known else drawn(case.model, theta, points, None, rng).log_z
        draws = found.log_z.to_numpy()[:, :, g]
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        held += bool(low <= truth <= high)
    return [float(held), len(case.theta)]


def table(done: dict[tuple[Any, ...], Any]) -> str:
    """Markdown."""
    lines = ["| cell | data sets | parameters | held | exact ones | log Z | width | not good |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for cell in CELLS:
        rows = [row for place, row in done.items() if place[0] == cell and "held" in row]
        if not rows:
            continue
        refused = sum("refused" in row for place, row in done.items() if place[0] == cell)
        bad = sum(row["grade"] in ("poor", "failed") for row in rows)
        width = [row["width"] for row in rows if "width" in row]
        for kind in dict.fromkeys(kind for row in rows for kind in row["held"]):
            exact = [row["exact"] for row in rows if kind in row.get("exact", {})]
            texts = [
                cell,
                f"{len(rows)}" + (f" ({refused} refused)" if refused else ""),
                kind,
                _share([row["held"] for row in rows], kind),
                _share(exact, kind) if exact else "",
                _share([{kind: row["log_z"]} for row in rows], kind),
                f"{np.mean(width):.3f}" if width else "",
                f"{bad}",
            ]
            lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _share(rows: Sequence[dict[str, Any]], kind: str) -> str:
    """The share held over all data sets, with its standard error between them."""
    counts = np.array([row[kind] for row in rows if kind in row and row[kind][1]])
    share = counts[:, 0].sum() / counts[:, 1].sum()
    off = counts[:, 0] - share * counts[:, 1]
    return f"{share:.3f} ({np.sqrt(np.sum(off**2)) / counts[:, 1].sum():.3f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    print(table(cells(measured, CELLS, 200, __doc__.splitlines()[0], arguments)))


if __name__ == "__main__":
    main()

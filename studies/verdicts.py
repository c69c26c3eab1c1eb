"""How often is the verdict of a fit wrong: of models that are right, and of those that are not?

    python studies/verdicts.py --out DIR [--part false] [--replications 100] [--table]

Every fit looks at itself (``posterior.verdict()``). Cells are those of ``verdict_cells.py``, fits
are short (2 chains of 300 + 500 sweeps, automatic noise, the default prior), and replication r has
data and fit of seed r.

- false: models that are right. A verdict calls predictions poor if the smallest p-value times the
  number of comparisons is below 0.01, so that happens to at most one fit in a hundred.
- power: models that are wrong.
- case: six angles around a common one, with a tenth of uniform rows or none, against several kinds
  of noise; 4 chains of 1000 + 1000 sweeps.
- seeds: one fit, whose log Z and verification are worked out again with other random numbers.
- cost: seconds and memory of the verification at the default settings of ``ncbayes.fit``.

Each part has a file of finished fits in DIR, which are not run again. --table runs nothing. Rates
of false alarms hold for data that no check was chosen by: once a check was changed after a look at
the table, --first 1001 and a new DIR give data sets that it has not seen.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import ncbayes as ncb
from ncbayes import posterior as posterior_module
from ncbayes.concerns import GRADES
from ncbayes.diagnosis import FALSE_ALARM
from ncbayes.problem import Problem
from ncbayes_paper.kept import finished, replications
from verdict_cells import RIGHT, WRONG, disturbed_angles

SHORT: dict[str, Any] = {"chains": 2, "tune": 300, "draws": 500}
QUIET: dict[str, Any] = {"cores": 1, "progress": False}
# Replications of each part if none are asked for; of case, data sets without uniform rows.
REPLICATIONS = {"case": 50, "false": 100, "power": 50, "seeds": 20, "cost": 3}
# Data sets with uniform rows: as clear as these cases are, a few show it.
DISTURBED = 5
# By kind of data: concentration, share of uniform rows, and the noise to try with its ratio.
DATA: dict[str, tuple[float, float, tuple[str, ...]]] = {
    "a tenth uniform": (15.0, 0.1, ("matched", "tree", "adaptive", "auto", "uniform, ratio 10")),
    "clean": (8.0, 0.0, ("auto", "uniform, ratio 10")),
}
NOISES: dict[str, Any] = {
    "matched": lambda x: {"noise": "matched"},
    "tree": lambda x: {"noise": ncb.noise.Tree.match(x)},
    "adaptive": lambda x: {"noise": ncb.noise.Adaptive()},
    "auto": lambda x: {},
    "uniform, ratio 10": lambda x: {
        "noise": ncb.noise.Uniform(ncb.spaces.Torus(6)), "noise_ratio": 10,
    },
}  # fmt: skip
CHECKED = (
    "5 angles",
    "8 binary columns",
    "3 reals",
    "5 binary columns, x3 = x1 xor x2 but for 15 %",
    "lognormal as gamma",
    "4 concentrated angles, a tenth of the rows uniform",
)
CELLS = {**RIGHT, **WRONG}
Row = dict[str, Any]


def fitted(name: str, seed: int, **options: Any) -> Any:
    """Posterior of one replication of a cell."""
    fit = CELLS[name](np.random.default_rng(seed))
    return fit(seed=seed, **QUIET, **options)


def row_of(posterior: Any) -> Row:
    """Numbers of a verdict that JSON holds."""
    tree, verdict = posterior.data, posterior.verdict()
    grades: dict[str, str] = {}
    for each in verdict.concerns:
        grades[each.kind] = max(grades.get(each.kind, "good"), each.grade, key=GRADES.index)
    facts = {each.kind: each.facts for each in verdict.concerns if each.facts}
    row = {
        "grade": verdict.grade,
        "concerns": grades,
        "gap": facts.get("normalizer", {}).get("gap"),
        "gap_sd": facts.get("normalizer", {}).get("sd"),
        "noise": tree.attrs.get("noise", ""),
        "wall_seconds": tree.attrs["wall_seconds"],
        "log_z_seconds": tree.attrs["log_z_seconds"],
        "verification_seconds": tree.attrs["verification_seconds"],
    }
    return {**row, **_stored(tree)}


def _stored(tree: Any) -> Row:
    """Numbers of the verification, worst over groups; p-values by kind of statistic."""
    if "verification" not in tree.children:
        return {"not_verified": tree.attrs.get("not_verified", "")}
    stored = tree["verification"].to_dataset()
    p_values, names = stored["p_value"].to_numpy(), stored["look_name"].to_numpy().astype(str)
    by_name: dict[str, float] = {}
    for name, p_value in zip(names.tolist(), p_values.tolist(), strict=True):
        by_name[name] = min(by_name.get(name, 1.0), p_value)
    worst = {}
    for name in ("strays", "moments"):
        known = stored[name].to_numpy()[np.isfinite(stored[name].to_numpy())]
        worst[name] = float(known.max()) if len(known) else None
    return {**worst, "comparisons": len(p_values), "p_values": by_name}


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings of fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        yield


def attempted(fit: Callable[[], Any]) -> Row:
    """Verdict of a fit, or the error that it ended with, and seconds."""
    began = time.perf_counter()
    try:
        with quiet():
            row = row_of(fit())
    except Exception as error:  # a fit that stops is a result, and others are still to be run
        row = {"error": f"{type(error).__name__}: {error}"}
    return {**row, "seconds": time.perf_counter() - began}


def measured(name: str, seed: int) -> Row:
    """Verdict of one short fit."""
    return attempted(lambda: fitted(name, seed, **SHORT))


def measured_case(kind: str, noise: str, seed: int) -> Row:
    """Verdict of a fit of six angles at the default length."""
    kappa, share, _ = DATA[kind]
    x = disturbed_angles(np.random.default_rng(seed), kappa, share, 300, 6)
    model = ncb.models.TorusGraph(6)
    return attempted(lambda: ncb.fit(model, x, seed=seed, **QUIET, **NOISES[noise](x)))


@contextmanager
def other_numbers(seed: int) -> Iterator[None]:
    """Let log Z and the verification draw random numbers of this seed."""
    kinds = {"normalizer_rng": 1, "verification_rng": 2}
    streams = {
        name: lambda problem, group, kind=kind: np.random.default_rng([seed, kind, group])
        for name, kind in kinds.items()
    }
    with mock.patch.multiple(Problem, **streams):
        yield


def measured_seeds(name: str, checks: int) -> list[Row]:
    """Verdicts of the first data set's fit under so many seeds of the check."""
    with quiet():
        posterior = fitted(name, 1, **SHORT)
        rows = []
        for seed in range(1, checks + 1):
            with other_numbers(seed):
                rows.append(row_of(posterior.extend(0)))
    return rows


def measured_cost(name: str, seed: int) -> Row:
    """Seconds of a fit at default settings, and the megabytes that its verification adds."""
    peaks = []

    def traced(*given: Any) -> None:
        tracemalloc.start()
        try:
            verify(*given)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.stop()

    verify = posterior_module.verify
    with quiet():
        fitted(name, seed, chains=1, tune=20, draws=20)  # compiles what is compiled once
        posterior = fitted(name, seed)
        with mock.patch.object(posterior_module, "verify", traced):
            posterior.extend(0)
    return {**row_of(posterior), "megabytes": peaks[0]}


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def by_cell(done: dict[tuple[Any, ...], Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Finished rows of each cell, in the order of the names."""
    found = {name: [row for place, row in done.items() if place[0] == name] for name in names}
    return {name: rows for name, rows in found.items() if rows}


def called(rows: Sequence[Row], kind: str, *grades: str) -> int:
    """How many rows have a concern of this kind and one of these grades."""
    return sum(row.get("concerns", {}).get(kind) in grades for row in rows)


def smallest(row: Row) -> float:
    """Smallest p-value times the number of comparisons, at most 1; NaN if there are none."""
    p_values = row.get("p_values")
    return min(1.0, min(p_values.values()) * row["comparisons"]) if p_values else np.nan


def stopped(rows: Sequence[Row]) -> int:
    """How many fits ended with an error."""
    return sum("error" in row for row in rows)


def false_table(done: dict[tuple[Any, ...], Any]) -> str:
    """Alarms of models that are right."""
    heads = ["right model", "fits", "predictions poor", "mass elsewhere poor or failed",
             "log Z failed", "moments poor", "anything failed", "stopped", "not verified",
             "p times comparisons below 0.05", "its 1, 10 and 50 % points"]  # fmt: skip
    lines = []
    for name, rows in by_cell(done, list(RIGHT)).items():
        p = np.array([smallest(row) for row in rows])
        known = p[np.isfinite(p)]
        points = np.quantile(known, [0.01, 0.1, 0.5]) if len(known) else []
        lines.append([
            name, len(rows), called(rows, "predictions", "poor"),
            called(rows, "elsewhere", "poor", "failed"), called(rows, "normalizer", "failed"),
            called(rows, "moments", "poor"), sum(row.get("grade") == "failed" for row in rows),
            stopped(rows), len(rows) - stopped(rows) - len(known), int((known < 0.05).sum()),
            ", ".join(f"{each:.2g}" for each in points),
        ])  # fmt: skip
    return table(heads, lines)


def power_table(done: dict[tuple[Any, ...], Any]) -> str:
    """Alarms of models that are wrong."""
    heads = ["wrong model", "fits", "predictions poor", "anything of verification or predictions",
             "stopped", "median of p times comparisons", "found by"]  # fmt: skip
    sides = ("predictions", "elsewhere", "normalizer", "moments")
    lines = []
    for name, rows in by_cell(done, list(WRONG)).items():
        found = [row for row in rows if smallest(row) < FALSE_ALARM]
        alarmed = sum(any(called([row], kind, "poor", "failed") for kind in sides) for row in rows)
        looks = Counter(min(row["p_values"], key=row["p_values"].get) for row in found)
        by = ", ".join(f"{look} ({count})" for look, count in looks.most_common(2))
        p = np.array([smallest(row) for row in rows])
        middle = np.nanmedian(p) if np.isfinite(p).any() else np.nan
        lines.append([name, len(rows), len(found), alarmed, stopped(rows), f"{middle:.2g}", by])
    return table(heads, lines)


def case_table(done: dict[tuple[Any, ...], Any]) -> str:
    """Grades of six angles by kind of data and noise."""
    heads = ["6 angles", "noise", "fits", "good, fair, poor, failed", "stopped", "predictions poor",
             "mass elsewhere poor or failed", "log Z failed", "moments poor", "strays",
             "log Z gap", "moments", "seconds"]  # fmt: skip
    lines = []
    for kind, (_, _, noises) in DATA.items():
        for noise in noises:
            rows = [row for place, row in done.items() if place[:2] == (kind, noise)]
            if not rows:
                continue
            grades = Counter(row.get("grade") for row in rows)
            lines.append([
                kind, noise, len(rows), ", ".join(str(grades[each]) for each in GRADES),
                stopped(rows), called(rows, "predictions", "poor"),
                called(rows, "elsewhere", "poor", "failed"), called(rows, "normalizer", "failed"),
                called(rows, "moments", "poor"), spread(rows, "strays"), spread(rows, "gap"),
                spread(rows, "moments"), spread(rows, "seconds"),
            ])  # fmt: skip
    return table(heads, lines)


def spread(rows: Sequence[Row], key: str) -> str:
    """Median, and smallest and largest in brackets."""
    values = np.array([row[key] for row in rows if row.get(key) is not None])
    if not len(values):
        return "not known"
    return f"{np.median(values):.2g} ({values.min():.2g} to {values.max():.2g})"


def seeds_table(done: dict[tuple[Any, ...], Any]) -> str:
    """How often one fit is called poor, over seeds of the check."""
    heads = ["one fit of", "checks", "predictions poor", "mass elsewhere poor or failed",
             "log Z failed", "moments poor", "p times comparisons", "moments"]  # fmt: skip
    lines = []
    for name, (rows, *_) in by_cell(done, CHECKED).items():
        numbers = [{**row, "p": smallest(row)} for row in rows]
        lines.append([
            name, len(rows), called(rows, "predictions", "poor"),
            called(rows, "elsewhere", "poor", "failed"), called(rows, "normalizer", "failed"),
            called(rows, "moments", "poor"), spread(numbers, "p"), spread(rows, "moments"),
        ])  # fmt: skip
    return table(heads, lines)


def cost_table(done: dict[tuple[Any, ...], Any]) -> str:
    """Seconds and memory of the verification."""
    heads = ["model", "fits", "noise and chains, s", "log Z at draws, s", "verification, s",
             "verification by the rest, %", "MB more"]  # fmt: skip
    lines = []
    for name, rows in by_cell(done, list(RIGHT)).items():
        wall, log_z, look = (
            np.array([row[f"{key}_seconds"] for row in rows])
            for key in ("wall", "log_z", "verification")
        )
        lines.append([
            name, len(rows), *(f"{np.median(each):.2f}" for each in (wall, log_z, look)),
            f"{100 * np.median(look / (wall + log_z)):.0f}",
            f"{max(row['megabytes'] for row in rows):.0f}",
        ])  # fmt: skip
    return table(heads, lines)


MEASURED = {
    "case": measured_case, "false": measured, "power": measured, "seeds": measured_seeds,
    "cost": measured_cost,
}  # fmt: skip
TABLES = {
    "case": case_table, "false": false_table, "power": power_table, "seeds": seeds_table,
    "cost": cost_table,
}  # fmt: skip


def places(
    part: str, count: int, chosen: Sequence[str] | None, first: int = 1
) -> list[tuple[Any, ...]]:
    """Fits of a part, by cell (or data and noise) and seed, from the first one on."""
    seeds = range(first, first + count)
    if part == "case":
        most = {"a tenth uniform": min(count, DISTURBED), "clean": count}
        every = [
            (kind, noise, seed)
            for kind, (_, _, noises) in DATA.items()
            for noise in noises
            for seed in seeds[: most[kind]]
        ]
    elif part == "seeds":
        every = [(name, count) for name in CHECKED]
    else:
        every = [(name, seed) for name in (WRONG if part == "power" else RIGHT) for seed in seeds]
    return [place for place in every if chosen is None or place[0] in chosen]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing of the parts asked for, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*REPLICATIONS, "all"], default="all")
    parser.add_argument("--replications", type=int)
    parser.add_argument("--first", type=int, default=1, help="seed of the first replication")
    parser.add_argument("--cells", nargs="+", help="some cells by their words, such as '3 reals'")
    parser.add_argument("--out", type=Path, required=True, help="folder of finished fits")
    parser.add_argument("--table", action="store_true", help="print what is there, run nothing")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for part in REPLICATIONS if given.part == "all" else [given.part]:
        keep = given.out / f"{part}.jsonl"
        if not given.table:
            asked = places(part, given.replications or REPLICATIONS[part], given.cells, given.first)
            replications(MEASURED[part], asked, 1, keep)
        print(f"{part}\n\n{TABLES[part](finished(keep))}\n", flush=True)


if __name__ == "__main__":
    main()

"""Which reading of the paper gives the numbers of its Tables 2 and 3? (docs/paper_notes.md)

    python studies/torus_readings.py [--replications 10] [--cores 2] [--keep rows.jsonl]

The chain of 12 angles, n = 200, data sets 1, 2, ... as in ``ncbayes reproduce table2``, one chain
of 1000 + 2000 sweeps. What the paper leaves open: is noise drawn once or anew in every sweep, also
where it is updated; is the prior the one that it states or the one that its algorithm samples; is
the global scale tau sampled, or fixed as for its recording? Means and standard errors, and the
paper's figures in the rows above.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_paper import published, torus_tables
from ncbayes_paper.kept import replications

COLUMNS = ("median_recall", "median_precision", "coverage", "interval_recall")


def readings(space: Any) -> dict[str, dict[str, Any]]:
    """The options of ``fit`` by reading; those of "noise updated" belong to the paper's update."""
    make, uniform = torus_tables.contrastive, ncb.noise.Uniform(space)
    new = ncb.noise.Fresh(uniform)
    updated = ncb.noise.Adaptive(uniform, alpha=torus_tables.ALPHA, method="resampling")
    own = ncb.engines.Gibbs(method="cholesky")
    tau = torus_tables.fixed_tau(space.dimension, 400)
    return {
        "stated prior, new noise": make(1, new),
        "stated prior, one noise set": make(1, uniform),
        "sampled prior, new noise": make(1, new, "likelihood"),
        "sampled prior, new noise, the paper's sampler": make(1, new, "likelihood")
        | {"engine": own},
        "sampled prior, one noise set": make(1, uniform, "likelihood"),
        "stated prior, new noise, tau fixed": make(1, new, tau=tau),
        "noise updated: stated prior, new noise": make(1, ncb.noise.Fresh(updated)),
        "noise updated: stated prior, one noise set": make(1, updated),
    }


NAMES = tuple(readings(ncb.spaces.Torus(12)))


def measured(reading: str, replication: int, tune: int, draws: int) -> dict[str, float]:
    """One fit."""
    simulated = torus_tables.simulated_data("chain", replication)
    options = readings(simulated.model.space)[reading]
    return torus_tables.rated(
        torus_tables.fitted_with(simulated, options, replication, tune, draws), simulated
    )


def cells(rows: list[dict[str, float]], columns: Iterable[str]) -> str:
    """Means and standard errors over data sets, as the cells of a row."""
    found = []
    for name in columns:
        values, digits = np.array([row[name] for row in rows]), 1 if name == "coverage" else 3
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        found.append(f"{values.mean():.{digits}f} ± {error:.{digits}f}")
    return " | ".join(found)


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """A row a reading, those of the paper first."""
    words = [name.replace("_", " rule: ").replace("interval", "90 % interval") for name in COLUMNS]
    lines = [f"| nu = 1 | {' | '.join(words)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for label, method in (("the paper", "nu=1"), ("the paper, noise updated", "nu=1 updated")):
        recall, precision, _ = published.MEDIAN["chain"][method]
        coverage, hits, _, _ = published.INTERVAL["chain"][method]
        lines.append(f"| {label} | {recall:.3f} | {precision:.3f} | {coverage:.1f} | {hits:.3f} |")
    lines += [f"| {reading} | {cells(rows, COLUMNS)} |" for reading, rows in found.items()]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="file of finished fits")
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    length, seeds = (options.tune, options.draws), range(1, options.replications + 1)
    places = [(reading, seed, *length) for seed in seeds for reading in NAMES]
    rows = replications(measured, places, options.cores, options.keep)
    by_place = dict(zip(places, rows, strict=True))
    print(table({name: [by_place[name, seed, *length] for seed in seeds] for name in NAMES}))


if __name__ == "__main__":
    main()

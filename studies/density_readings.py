"""Which bandwidth and which common noise give the errors of the paper's Table 1, column N1?

    python studies/density_readings.py [--replications 10] [--cores 2] [--keep rows.jsonl]

Neither is given in the paper (docs/paper_notes.md). ABE as in ``ncbayes reproduce table1``, with
the paper's prior and as many noise points as data: bandwidths as factors of the median distance
between centers, of which 1.5 is our rule, with our common noise (kernels at all points, and a tenth
anywhere), and our rule with uniform noise. Data set r has seed r.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

import ncbayes as ncb
from ncbayes_paper import density_table, published
from ncbayes_paper.kept import replications

# By reading: the factor of the bandwidth, and whether noise is uniform.
READINGS: dict[str, tuple[float, bool]] = {
    "factor 1": (1.0, False),
    "factor 1.5, the rule": (1.5, False),
    "factor 3": (3.0, False),
    "factor 6": (6.0, False),
    "factor 1.5, uniform noise": (1.5, True),
}


def measured(scenario: str, reading: str, replication: int, tune: int, draws: int) -> float:
    """The ABE of one fit."""
    factor, uniform = READINGS[reading]
    simulated = density_table.SCENARIOS[scenario](seed=replication)
    points = simulated.points
    wide = 0.1 * np.ptp(points, axis=0)
    box = ncb.spaces.Box(points.min(axis=0) - wide, points.max(axis=0) + wide)
    centers = ncb.models.RadialBasis.match(points, box).table
    bandwidth = factor * float(np.median(pdist(centers)))
    noise: Any = ncb.noise.Uniform(box) if uniform else "common"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit_density_over_time(
            points, simulated.times, domain=box, bandwidth=bandwidth, noise=noise, tune=tune,
            draws=draws, chains=1, cores=1, seed=replication, progress=False,
            **density_table.PAPER_PRIOR,
        )  # fmt: skip
    at = ncb.metrics.evaluation_points(points, seed=replication)
    volume = float(np.exp(ncb.metrics.rectangle(points).log_volume))
    truth = np.array([simulated.density(t, at) for t in np.unique(simulated.times)])
    return density_table.rated(posterior, at, truth, volume)["abe"]


def table(found: dict[tuple[str, str], list[float]]) -> str:
    """A row a reading, a column a scenario."""
    paper = [f"{rows['common'][0]:.3f}" for rows in published.DENSITY.values()]
    lines = ["| ABE | scenario 1 | scenario 2 |", "|---|---|---|"]
    lines.append(f"| the paper, N1 | {' | '.join(paper)} |")
    for reading in dict.fromkeys(name for _, name in found):
        cells = []
        for scenario in published.DENSITY:
            values = np.array(found[scenario, reading])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            cells.append(f"{values.mean():.3f} ± {error:.3f}")
        lines.append(f"| {reading} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="file of finished fits")
    options = parser.parse_args()
    places = [
        (scenario, reading, seed, *density_table.SWEEPS)
        for seed in range(1, options.replications + 1)
        for scenario in density_table.SCENARIOS
        for reading in READINGS
    ]
    found: dict[tuple[str, str], list[float]] = {}
    values = replications(measured, places, options.cores, options.keep)
    for (scenario, reading, *_), value in zip(places, values, strict=True):
        found.setdefault((scenario, reading), []).append(value)
    print(table(found))


if __name__ == "__main__":
    main()

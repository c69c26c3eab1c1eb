"""How wide should basis functions be? (The rule of ``models.RadialBasis.match``.)

    python studies/bandwidths.py [--data mixture ring city] [--kernels exponential gaussian]
        [--crime crime.csv --outline city.geojson] [--replications 6] [--cores 1]
        [--keep rows.jsonl]

Bandwidths are factors times the median distance between the centers. Densities over time, one chain
of 200 + 400 sweeps, everything else as ``fit_density_over_time`` has it. For each factor: the mean
log score of held-out points less that of the rule's factor (larger is better), and ABE (smaller is
better; ``ncbayes.metrics``) where the truth is known, with standard errors over replications. Fits
may be refused: wide Gaussian bumps are linear combinations of each other but for rounding.

Data: "mixture" and "ring" are the paper's scenarios 1 and 2, "city" the simulated incidents, all
with seed r in replication r and held-out points from seed 1000 + r; "crime" are the incidents of
the CSV file of --crime, in five folds (``studies/crime.py``).

With --keep every fit is written to a file when it is done, and not run again.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

import crime
import ncbayes as ncb
from ncbayes_paper.kept import replications

TUNE, DRAWS = 200, 400
FACTORS = {
    "exponential": (0.5, 0.75, 1.0, 1.5, 2.0, 3.0),
    "gaussian": (0.25, 0.35, 0.5, 0.7, 1.0),
}
RULE = ncb.models.radial.RULE
SCENARIOS = {"mixture": ncb.datasets.moving_mixture, "ring": ncb.datasets.growing_ring}
FOLDS = 5
HELD_OUT = 1000


def split(name: str, replication: int, files: tuple[str | None, str | None]) -> tuple:
    """Points and times to fit, those to predict, the domain, and the truth or None."""
    seeds = (replication, HELD_OUT + replication)
    if name in SCENARIOS:
        seen, other = (SCENARIOS[name](seed=seed) for seed in seeds)
        # The box that a fit takes without a domain.
        low, high = seen.points.min(axis=0), seen.points.max(axis=0)
        box = ncb.spaces.Box(low - 0.1 * (high - low), high + 0.1 * (high - low))
        inside = box.contains(other.points)
        return seen.points, seen.times, other.points[inside], other.times[inside], box, seen
    if name == "city":
        seen, other = (ncb.datasets.incidents(seed=seed) for seed in seeds)
        points, times = (seen.points, other.points), (seen.times, other.times)
    else:
        seen = crime.loaded(*files)
        held = crime.split(seen.times.dt.month.to_numpy(), FOLDS) == replication
        points = (seen.points[~held], seen.points[held])
        times = (seen.times[~held], seen.times[held])
    flat = ncb.spaces.Projection.around(points[0])
    rings = ncb.spaces.Region.of(seen.outline).rings
    region = ncb.spaces.Region(tuple(flat.forward(ring) for ring in rings))
    return flat.forward(points[0]), times[0], flat.forward(points[1]), times[1], region, None


def measured(
    name: str, kernel: str, factor: float, replication: int, data: str | None, outline: str | None
) -> dict[str, float]:
    """The mean log score, and ABE where there is a truth, of one fit; nothing if it is refused."""
    points, times, others, later, domain, truth = split(name, replication, (data, outline))
    centers = ncb.models.RadialBasis.match(points, domain).table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        try:
            posterior = ncb.fit_density_over_time(
                points, times, domain=domain, kernel=kernel,
                bandwidth=factor * float(np.median(pdist(centers))),
                every=None if truth else "month", tune=TUNE, draws=DRAWS, chains=1, cores=1,
                seed=replication, progress=False,
            )  # fmt: skip
        except ncb.InputError:  # wide bumps that are linear combinations of each other
            return {}
    found = {"score": ncb.scores.log_score(posterior, others, times=later).mean}
    if truth is not None:
        at = ncb.metrics.evaluation_points(points, seed=replication)
        volume = float(np.exp(ncb.metrics.rectangle(points).log_volume))
        true = np.array([truth.density(t, at) for t in np.unique(times)])
        estimate = ncb.densities.density(posterior, at)["mean"].to_numpy()
        found["abe"] = ncb.metrics.absolute_error(estimate, true, volume)
    return found


def table(rows: dict[tuple[str, float, str], list[dict[str, float]]]) -> str:
    """A row a kernel and factor, two columns a data set."""
    names = list(dict.fromkeys(name for _, _, name in rows))
    head = ["kernel", "factor"]
    for name in names:
        head += [f"{name}: log score", f"{name}: ABE"][: 2 if name in SCENARIOS else 1]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for kernel, factor in dict.fromkeys((kernel, factor) for kernel, factor, _ in rows):
        cells: list[str] = []
        for name in names:
            own, rule = rows[kernel, factor, name], rows[kernel, RULE[kernel], name]
            cells += _cells(own, rule, factor == RULE[kernel])[: 2 if name in SCENARIOS else 1]
        words = f"{factor:g}" + (" (the rule)" if factor == RULE[kernel] else "")
        lines.append(f"| {kernel} | {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(
    own: list[dict[str, float]], rule: list[dict[str, float]], is_rule: bool
) -> tuple[str, str]:
    """The score, less that of the rule, and ABE; of the rule its own score."""
    if not all(own):
        refused = f"refused in {own.count({})} of {len(own)}"
        return refused, refused
    scores = [row["score"] for row in own]
    gains = [score - row["score"] for score, row in zip(scores, rule, strict=True)]
    first = f"{np.mean(scores):.3f}" if is_rule else _cell(gains, "+")
    return first, _cell([row.get("abe", np.nan) for row in own])


def _cell(values: list[float], sign: str = "") -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):{sign}.3f} ± {error:.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", choices=[*SCENARIOS, "city"],
                        default=[*SCENARIOS, "city"])  # fmt: skip
    parser.add_argument("--crime")
    parser.add_argument("--outline")
    parser.add_argument("--kernels", nargs="+", choices=FACTORS, default=list(FACTORS))
    parser.add_argument("--replications", type=int, default=6)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if (options.crime is None) != (options.outline is None):
        parser.error("--crime and --outline go together: the density is zero outside the outline")
    names = [*options.data, *(["crime"] if options.crime else [])]
    places = []
    for name in names:
        count = FOLDS if name == "crime" else options.replications
        files = (options.crime, options.outline) if name == "crime" else (None, None)
        places += [(name, kernel, factor, r, *files) for r in range(count)
                   for kernel in options.kernels for factor in FACTORS[kernel]]  # fmt: skip
    found = replications(measured, places, options.cores, options.keep)
    rows: dict[tuple[str, float, str], list[dict[str, float]]] = {}
    for (name, kernel, factor, *_), row in zip(places, found, strict=True):
        rows.setdefault((kernel, factor, name), []).append(row)
    print(f"{options.replications} replications, {TUNE} + {DRAWS} sweeps\n\n{table(rows)}")


if __name__ == "__main__":
    main()

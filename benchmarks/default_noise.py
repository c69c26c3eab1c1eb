"""What automatic noise, the default, costs a small fit.

    python benchmarks/default_noise.py [--repeats 5]

200 angles, default draws, four chains, in one run; medians over repeats. Matched noise, matched
noise at the ratio that automatic noise chooses (what is left of the difference are the trials), and
automatic noise. Seconds by the clock for one core and for the default; seconds of the processor,
which other work on the machine changes less, for one core; and those of one chain of one draw,
which is what comes before the chains.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

import ncbayes as ncb

MODEL = ncb.models.VonMises()
DATA = MODEL.sample(np.array([1.5, 1.0]), 200, np.random.default_rng(1))


def seconds(clock: Callable[[], float], repeats: int, **options) -> float:
    """The median time of a fit by this clock."""
    times = []
    for _ in range(repeats):
        began = clock()
        ncb.fit(MODEL, DATA, seed=1, progress=False, **options)
        times.append(clock() - began)
    return float(np.median(times))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", ncb.FitWarning)
    ratio = ncb.fit(MODEL, DATA, seed=1, progress=False).data.attrs["noise_ratio"]
    cases = {
        "matched, ratio 1": {"noise": "matched", "noise_ratio": 1},
        f"matched, ratio {ratio:g}": {"noise": "matched", "noise_ratio": ratio},
        f"auto (chose ratio {ratio:g})": {},
    }
    print("| noise | cores=1 | default cores | processor, cores=1 | before the chains |")
    print("|---|---|---|---|---|")
    wall, processor = time.perf_counter, time.process_time
    first = {"cores": 1, "draws": 1, "tune": 0, "chains": 1}
    for name, options in cases.items():
        found = [
            seconds(wall, repeats, cores=1, **options),
            seconds(wall, repeats, **options),
            seconds(processor, repeats, cores=1, **options),
            seconds(processor, repeats, **first, **options),
        ]
        print(f"| {name} | {' | '.join(f'{each:.2f}' for each in found)} |", flush=True)


if __name__ == "__main__":
    main()

"""ncbayes beside the alternatives, in one run: tables of ratios, and cost against N, p, d and T.

    ncbayes bench [--quick] [--out FOLDER]

Alternatives: NumPyro's NUTS, the paper's Gibbs samplers in dense NumPy, the point estimate by score
matching, and SciPy's KDE. One thread each, seconds of the processor. Writes ``comparison.md`` and
``comparison.png`` into the folder. --quick: tiny problems, to see that everything runs; its
numbers mean nothing. NumPyro is the extra ``bench``; without it the tables have no NUTS.
"""

from __future__ import annotations

import datetime
import importlib.util
import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import ncbayes as ncb
from ncbayes_bench import cost, density, nuts, torus
from ncbayes_bench.nuts_horseshoe import ONE_THREAD
from ncbayes_bench.page import FULL, INSTALL, QUICK, SEED, Part, Say, Sizes, clock, digits

PAGE = "comparison.md"
MISSING = f"NumPyro is not installed, so there is no NUTS here: `{INSTALL}`."
PACKAGES = ("numpy", "scipy", "polyagamma", "numba", "numpyro", "jax")


def has_nuts() -> bool:
    """Whether NumPyro is installed."""
    return importlib.util.find_spec("numpyro") is not None


def first_fit() -> float:
    """Seconds of a first tiny fit, which compiles our loops or reads them from the cache."""
    began = clock()
    nuts.fitted(ncb.datasets.torus_chain(20, nodes=3, seed=SEED), 1.0, 2, 2)
    return clock() - began


def parts(sizes: Sizes, folder: Path, with_nuts: bool, say: Say) -> list[Part]:
    """All tables."""
    return [
        torus.samplers(sizes, with_nuts, say),
        torus.estimates(sizes, say),
        density.samplers(sizes, with_nuts, say),
        density.errors(sizes, say),
        cost.costs(sizes, folder, say),
    ]


def versions(with_nuts: bool) -> str:
    """Python and the packages that matter."""
    names = PACKAGES if with_nuts else PACKAGES[:-2]
    found = [f"{name} {version(name)}" for name in names]
    return ", ".join([f"Python {platform.python_version()}", *found])


def opening(quick: bool, with_nuts: bool, compiling: float, load: float) -> list[str]:
    """What was run, when, with what."""
    command = "ncbayes bench" + " --quick" * quick
    lines = [
        "# ncbayes beside the alternatives",
        f"`{command}`, {datetime.date.today()}, ncbayes {ncb.__version__}. {versions(with_nuts)}; "
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores. Seeds: {SEED} in "
        f"tables 1, 3 and 5, the number of the data set in tables 2 and 4.",
        "All seconds are those of the processor, on one thread: other programs may have been "
        f"running (the load was {load:.1f} when this began), and slow down caches and memory all "
        f"the same. Our compiled loops come from a cache; the first fit of the run took "
        f"{compiling:.1f} s and is not counted. **Every ratio is above 1 where ncbayes does "
        "better**; in a row of ncbayes itself, where the first row of the table does.",
    ]
    if quick:
        lines.append("**A quick run: tiny problems, few draws. The numbers mean nothing.**")
    return lines if with_nuts else [*lines, MISSING]


def reading(found: Sequence[Part]) -> str:
    """Sentences that follow from the numbers alone."""
    sentences = [sentence for part in found for sentence in part.reading]
    ratios = {name: value for part in found for name, value in part.ratios.items()}
    # Rows of ncbayes itself compare its own settings.
    ratios = {name: value for name, value in ratios.items() if "ncbayes" not in name}
    behind = [f"{name} ({digits(value)})" for name, value in ratios.items() if value < 1]
    verdict = f"Of {len(ratios)} ratios, {len(ratios) - len(behind)} are 1 or more."
    if behind:
        verdict += f" ncbayes is behind in: {'; '.join(behind)}."
    return "\n".join(["## What the numbers say", "", *(f"- {s}" for s in [*sentences, verdict])])


def page(found: Sequence[Part], head: Sequence[str], minutes: float) -> str:
    """The whole page."""
    sections = [f"## {part.title}\n\n{part.text}" for part in found]
    end = f"The whole run took {minutes:.1f} minutes of the processor."
    return "\n\n".join([*head, *sections, reading(found), end]) + "\n"


def run(out: Path, quick: bool, say: Say) -> list[Path]:
    """Run everything and write the page and its picture, whose paths are returned."""
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    began, load, with_nuts = time.perf_counter(), os.getloadavg()[0], has_nuts()

    def timed(text: str) -> None:
        say(f"{time.perf_counter() - began:6.0f} s  {text}")

    if not with_nuts:
        say(MISSING)
    start = clock()
    compiling = first_fit()
    found = parts(QUICK if quick else FULL, out, with_nuts, timed)
    minutes = (clock() - start) / 60
    text = page(found, opening(quick, with_nuts, compiling, load), minutes)
    (out / PAGE).write_text(text, encoding="utf-8")
    return [out / PAGE, out / cost.PICTURE]

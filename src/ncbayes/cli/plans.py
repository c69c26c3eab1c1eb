"""What a fit will take, known from a few sweeps of it."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

from ncbayes.cli.jobs import Ready
from ncbayes.cli.mistakes import in_the_users_words
from ncbayes.contrast import uses_noise
from ncbayes.fitting import DRAWS
from ncbayes.noise import Adaptive, Auto
from ncbayes.posterior import Posterior
from ncbayes.resources import GIGABYTE, WORTH_PROCESSES_SECONDS, affordable_processes

# Sweeps before the measured ones, in which compiled code is loaded and chains find their place.
WARM_UP, FIRST = 10, 4
# So long, or so many sweeps, are enough to know the time of one.
ENOUGH_SECONDS, ENOUGH_SWEEPS = 1.0, 2000
MADE = ("auto", "adaptive")


def plan(made: Ready) -> dict[str, Any]:
    """Rows, statistics, noise points, memory and time of a fit."""
    fit, trials = made.job.fit, _makes_noise(made)
    draws, tune, chains = fit.get("draws", DRAWS), fit["tune"], fit["chains"]
    cores = fit.get("cores")
    posterior, setup, each, measured = _measured(made, trials)
    assert posterior.run is not None
    size = posterior.run.size
    processes = affordable_processes(size, draws, chains, cores)
    segments = posterior.run.problem.schedule.plan(draws, tune)
    sweeps = sum(segment.tune + segment.draws for segment in segments)
    if cores is None and chains * sweeps * each < WORTH_PROCESSES_SECONDS:
        processes = 1
    one, together = size.needed_bytes(draws, chains)
    noise_points = 0
    if "noise" in posterior.data.children:
        noise_points = int(posterior.data["noise"]["noise_points"].isel(noise_set=0).sum())
    return {
        "model": str(posterior.data.attrs["model"]),
        "rows": made.rows,
        "groups": len(size.rows),
        "statistics": size.statistics,
        "noise_points": noise_points,
        "noise_is_chosen_first": trials,
        "chains": chains,
        "sweeps_a_chain": sweeps,
        "processes": processes,
        "gigabytes": (one * processes + together) / GIGABYTE,
        "measured_sweeps": measured,
        "seconds_a_sweep": each,
        "seconds_before": setup,
        "seconds": setup + math.ceil(chains / processes) * sweeps * each,
    }


def _measured(made: Ready, trials: bool) -> tuple[Posterior, float, float, int]:
    """A short fit by one chain, seconds before its sweeps, seconds a sweep, and of how many."""
    began, tune = time.monotonic(), min(WARM_UP, made.job.fit["tune"])
    short: dict[str, Any] = {"draws": FIRST, "tune": tune, "chains": 1, "cores": 1}
    if trials:
        short["noise"] = "common" if made.model is None else "matched"
    with warnings.catch_warnings(), in_the_users_words(made.job, made.numbers):
        warnings.simplefilter("ignore")
        posterior = made.call(**short, progress=False)
        setup = time.monotonic() - began - float(posterior.data.attrs["wall_seconds"])
        more, each, measured = FIRST, 0.0, 0
        while measured < ENOUGH_SWEEPS:
            before = float(posterior.data.attrs["wall_seconds"])
            posterior = posterior.extend(more)
            seconds = float(posterior.data.attrs["wall_seconds"]) - before
            each, measured = seconds / more, more
            if seconds >= ENOUGH_SECONDS:
                break
            more *= 2 if seconds > ENOUGH_SECONDS / 4 else 4
    return posterior, setup, each, measured


def _makes_noise(made: Ready) -> bool:
    """Whether noise is chosen or adapted before the chains start."""
    options = made.call.keywords  # type: ignore[attr-defined]
    over_time = made.model is None
    noise = options.get("noise", "common" if over_time else "auto")
    if not uses_noise(options.get("engine")):
        return False
    inner = getattr(noise, "noise", None)
    return any(isinstance(each, Adaptive | Auto) or each in MADE for each in (noise, inner))


def lines(found: dict[str, Any]) -> list[str]:
    """The plan in words."""
    ratio = found["noise_points"] / found["rows"]
    told = [
        f"model       {found['model']}",
        f"data        {found['rows']} rows in {found['groups']} "
        f"{'group' if found['groups'] == 1 else 'groups'}",
        f"statistics  {found['statistics']} a group",
        f"noise       {found['noise_points']} points, {ratio:.3g} for each row",
        f"memory      about {found['gigabytes']:.2g} GB",
        f"time        about {in_words(found['seconds'])}: {found['chains']} chains of "
        f"{found['sweeps_a_chain']} sweeps, {found['processes']} at a time,",
        f"            {1000 * found['seconds_a_sweep']:.3g} ms a sweep, measured over "
        f"{found['measured_sweeps']} sweeps of one chain here",
    ]
    if found["noise_is_chosen_first"]:
        told += [
            "",
            "The noise will be chosen or adapted in trials before the chains start. They come",
            "on top, and may ask for more noise points, which lengthen each sweep in",
            "proportion; --noise-ratio fixes their number.",
        ]
    return told


def in_words(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    >>> in_words(0.4), in_words(50), in_words(400), in_words(9000)
    ('1 s', '50 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"

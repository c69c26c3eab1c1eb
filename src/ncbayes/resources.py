"""Memory and processes: what a fit needs, known before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ncbayes.base import InputError, Segment
from ncbayes.contrast import Target
from ncbayes.linalg import gaussian

GIGABYTE = 1e9
# Starting processes takes a second or two, so a run of less than this stays in one.
WORTH_PROCESSES_SECONDS = 4.0
# A Polya-Gamma draw and the elementwise work for one pooled point (benchmarks/engine.py).
SECONDS_A_POINT = 2.0e-7
# What is kept of a structured design at most, in bytes (engines/posing.py, engines/runs.py).
KEPT = 2.0**27
# A joint trajectory: its ten or so gradients by entry of the design, and what comes with them.
SECONDS_AN_ENTRY, SECONDS_A_TRAJECTORY = 2.0e-9, 2.0e-5
# A NUTS transition of an energy: its 20 or so gradients by point and parameter, and its start.
SECONDS_A_SLOPE, SECONDS_A_TREE = 4.0e-8, 3.0e-4
# Rows that a fit looks at when it looks at itself, those simulated, statistics that are taken out
# (checks/verification.py), and bytes of data sets drawn from them.
MOST_LOOKED_AT, MOST_SIMULATED, MOST_TAKEN_OUT, SETS = 5000, 6000, 1500, 1.6e7
# What a choice that nobody asked for may take of the memory, which changes while we look.
SHARE = 0.8


@dataclass(frozen=True)
class Size:
    """How large a problem is: pooled points by group, statistics, dimension of a point."""

    rows: tuple[int, ...]
    statistics: int
    dimension: int
    structured: bool

    def needed_bytes(self, draws: int, chains: int) -> tuple[float, float]:
        """Bytes that each process, and all of them together, hold at their largest."""
        p, points = self.statistics + 1, sum(self.rows)
        # Points in four places; offset, labels, weights, log odds and what is made on the way.
        pooled = 8.0 * points * (4 * self.dimension + 15)
        # Design, its weighted copy, its columns for trajectories in double and single precision,
        # and what the checks before the chains make of it; of a structured design no more than
        # what is kept.
        matrix = min(8.0 * p * points, KEPT) if self.structured else 8.0 * p * 7 * points
        # Precision and factor by group; conjugate gradients and Woodbury have neither.
        square = 8.0 * min(p, max(self.rows)) ** 2 * (1 + len(self.rows))
        kept = 8.0 * draws * len(self.rows) * p
        looked = self._looked_at()
        return matrix + square + pooled + kept + looked, 3 * chains * kept

    def _looked_at(self) -> float:
        """Bytes of the look at the fit: statistics of rows and of simulated ones, twice and more.

        (checks/verification.py, which takes out no more than so many statistics)
        """
        seen = min(max(self.rows), MOST_LOOKED_AT) + MOST_SIMULATED
        d, p = self.dimension, self.statistics if self.statistics <= MOST_TAKEN_OUT else 64
        pairs = min(d * (d - 1), 1000)
        return SETS + 8.0 * (seen + 4 * p) * (5 * p + pairs + 15 * d + 10)

    @property
    def remedy(self) -> str:
        """What to do if there is not so much memory."""
        return (
            "lower noise_ratio, draws, chains or cores, use fewer rows, or a model with a "
            "structured design"
        )


@dataclass(frozen=True)
class ScoreSize:
    """How large a problem without noise is: rows of data by group, statistics, dimension."""

    rows: tuple[int, ...]
    statistics: int
    dimension: int
    held: float = 0.0
    """Bytes that its losses hold besides."""

    def needed_bytes(self, draws: int, chains: int) -> tuple[float, float]:
        """Bytes that each process, and all of them together, hold at their largest."""
        groups, p = len(self.rows), self.statistics
        points = 8.0 * sum(self.rows) * (2 * self.dimension + p)
        # Gram matrix, its copy on the way to the process, precision and factor, by group.
        square = 8.0 * p**2 * 4 * groups
        kept = 8.0 * draws * groups * p
        return points + square + kept + self.held, 3 * chains * kept

    @property
    def remedy(self) -> str:
        """What to do if there is not so much memory."""
        return "lower draws, chains or cores, or use a model with fewer statistics or groups"


def affordable_processes(size: Size | ScoreSize, draws: int, chains: int, cores: int | None) -> int:
    """How many processes the memory allows, at most one a chain and core; InputError if none.

    ``cores``: how many the user asked for, neither more nor fewer; None: as many as are good.
    """
    each, together = size.needed_bytes(draws, chains)
    available = available_bytes()
    wanted = min(chains, cores or os.cpu_count() or 1)
    fits = _fitting(size, draws, chains, available)
    if fits >= wanted or (fits >= 1 and cores is None):
        return min(fits, wanted)
    need = (each * (1 if cores is None else wanted) + together) / GIGABYTE
    raise InputError(
        f"this fit needs about {need:.4g} GB of memory and {available / GIGABYTE:.4g} GB are "
        f"available; {size.remedy}"
    )


def is_affordable(size: Size | ScoreSize, draws: int, chains: int, cores: int | None) -> bool:
    """Whether ``affordable_processes`` finds enough in a part of the memory."""
    wanted = 1 if cores is None else min(chains, cores)
    return _fitting(size, draws, chains, SHARE * available_bytes()) >= wanted


def _fitting(size: Size | ScoreSize, draws: int, chains: int, available: float) -> int:
    """How many processes so many bytes hold."""
    each, together = size.needed_bytes(draws, chains)
    return int((available - together) // max(each, 1.0))


def worthwhile_processes(
    size: Size | ScoreSize, target: Target, plan: Sequence[Segment], chains: int, cores: int | None
) -> int:
    """``affordable_processes``, but one where the run is too short to be worth starting more."""
    processes = affordable_processes(size, sum(s.draws for s in plan), chains, cores)
    sweeps = chains * sum(segment.tune + segment.draws for segment in plan)
    short = sweeps * sweep_seconds(target) < WORTH_PROCESSES_SECONDS
    return 1 if short and cores is None else processes


def sweep_seconds(target: Target, more: float = 1.0) -> float:
    """A guess at the time of one sweep; ``more``: as if there were so many times the points."""
    if target.losses:
        return float(sum(each.sweep_seconds for each in target.losses))
    if target.curves:
        points = more * sum(len(each.offset) for each in target.curves)
        return SECONDS_A_SLOPE * points * target.shape[1] + SECONDS_A_TREE
    designs = [each.design for each in target.contrasts]
    shapes = tuple((round(more * design.shape[0]), design.shape[1]) for design in designs)
    flops = more * float(sum(design.matvec_flops for design in designs))
    method = gaussian.choose_method(shapes, flops, False, True)
    points = sum(rows for rows, _ in shapes)
    drawn = gaussian.predicted_seconds(method, shapes, flops) + SECONDS_A_POINT * points
    entries = sum(rows * columns for rows, columns in shapes)
    # The engine that "auto" takes is nearly always the faster one.
    return min(drawn, SECONDS_AN_ENTRY * entries + SECONDS_A_TRAJECTORY)


def available_bytes() -> float:
    """Memory that this process may still use: the machine's, or its container's if less."""
    import psutil

    available = float(psutil.virtual_memory().available)
    limit = Path("/sys/fs/cgroup/memory.max")
    used = Path("/sys/fs/cgroup/memory.current")
    try:
        text = limit.read_text().strip()
        if text != "max":
            available = min(available, float(text) - float(used.read_text()))
    except OSError:
        pass  # no such control group: the machine's memory it is
    return available

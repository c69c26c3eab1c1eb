"""What the parts of the comparison share: sizes, seeds, a clock, and how tables are written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

SEED = 1
INSTALL = "pip install 'ncbayes[bench]'"
# With fewer effective draws neither standard errors nor this number itself are to be trusted.
FEWEST_EFFECTIVE = 100
# Says what is being done.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """How large the problems are and how long the chains.

    ``sweeps`` (tune, draws) of tables 1 and 3, NUTS ``nuts_draws`` after as many of tuning;
    ``torus_sweeps`` and ``density_sweeps`` of tables 2 and 4, on ``data_sets`` each. Table 5 varies
    ``points``, ``edges``, ``angles`` and ``times``, for ``seconds`` a cell.
    """

    nodes: int = 12
    rows: int = 200
    ratios: tuple[float, ...] = (1.0, 5.0)
    sweeps: tuple[int, int] = (1000, 3000)
    nuts_draws: int = 500
    data_sets: int = 5
    torus_sweeps: tuple[int, int] = (500, 1500)
    times_per_density: int = 10
    points_per_time: int = 100
    density_sweeps: tuple[int, int] = (500, 1000)
    points: tuple[int, ...] = (300, 1200, 4800, 19200)
    edges: tuple[int, ...] = (10, 30, 90, 190)
    angles: tuple[int, ...] = (5, 10, 20, 30, 45)
    times: tuple[int, ...] = (3, 10, 30, 100)
    varied_nodes: int = 20
    varied_rows: int = 200
    seconds: float = 1.0


FULL = Sizes()
QUICK = Sizes(
    nodes=3,
    rows=40,
    ratios=(1.0,),
    sweeps=(20, 60),
    nuts_draws=40,
    data_sets=2,
    torus_sweeps=(20, 40),
    times_per_density=3,
    points_per_time=40,
    density_sweeps=(20, 40),
    points=(60, 240),
    edges=(2, 6),
    angles=(3, 5),
    times=(2, 4),
    varied_nodes=4,
    varied_rows=20,
    seconds=0.02,
)


@dataclass(frozen=True)
class Part:
    """A section of the page.

    ``ratios`` by what they compare, above 1 where ncbayes does better; ``reading`` are sentences.
    """

    title: str
    text: str
    ratios: Mapping[str, float] = field(default_factory=dict)
    reading: Sequence[str] = ()


def clock() -> float:
    """Seconds of the processor that this process has used."""
    return time.process_time()


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown; headings named "ratio" and their cells are bold."""
    bold = [name == "ratio" for name in header]

    def line(cells: Sequence[str]) -> str:
        marked = [
            f"**{cell}**" if strong and cell else cell
            for strong, cell in zip(bold, cells, strict=True)
        ]
        return f"| {' | '.join(marked)} |"

    return "\n".join([line(header), "|---" * len(header) + "|", *map(line, rows)])


def digits(value: float) -> str:
    """Three digits; nothing for what was not measured."""
    if np.isnan(value):
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def with_error(values: Sequence[float], places: int = 3) -> str:
    """The mean and its standard error."""
    array = np.asarray(values, dtype=float)
    if len(array) < 2:
        return f"{array.mean():.{places}f}"
    error = array.std(ddof=1) / np.sqrt(len(array))
    return f"{array.mean():.{places}f} ± {error:.{places}f}"

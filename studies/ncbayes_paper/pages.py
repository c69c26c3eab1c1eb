"""The results of a table beside the paper's: files of numbers, and a page in Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ncbayes_paper.study import Column, Measured, Row, Table

# What a run came to: the measured numbers by place.
Fits = Mapping[tuple[Any, ...], Measured]
# Monte Carlo standard errors within which two means agree.
ERRORS = 2.0

LEGEND = """\
Mean ± Monte Carlo standard error; in parentheses the paper's figure and how ours compares.
**agrees**: within 2 standard errors of both (the paper's taken to be ours, scaled to its number of
data sets) and the rounding of the printed figure; coverages also agree where both reach the nominal
level, ours within 2 standard errors. **better** and **worse**: beyond that. ESS and R-hat are those
of the worst parameter of a fit (R-hat between the halves of its chain), in the median over the data
sets."""


@dataclass(frozen=True)
class Cell:
    """What a row has in a column: a mean (or median) of ``count`` data sets and its error.

    ``paper`` and ``mark`` where the paper has a figure for it.
    """

    row: Row
    column: Column
    value: float
    error: float
    count: int
    paper: float = math.nan
    mark: str = ""


def mark(cell: Cell, replications: int) -> str:
    """ "agrees", "better" or "worse"; nothing where there is no error or nothing to compare."""
    aim, gap = cell.column.aim, cell.value - cell.paper
    if aim is None or math.isnan(cell.paper) or math.isnan(cell.error):
        return ""
    theirs = cell.error * math.sqrt(cell.count / replications)
    rounding = 0.5 * 10.0**-cell.column.digits
    # The last term: rounding of the difference itself.
    close = abs(gap) <= ERRORS * math.hypot(cell.error, theirs) + rounding + 1e-9
    if isinstance(aim, str):
        return "agrees" if close else "better" if (gap > 0) == (aim == "high") else "worse"
    reached = cell.value + ERRORS * cell.error
    ours, papers = (max(0.0, aim - value) for value in (reached, cell.paper))
    return "agrees" if close or ours == papers else "better" if ours < papers else "worse"


def cells(
    table: Table, fits: Fits, replications: int, sweeps: tuple[int, int] | None
) -> list[Cell]:
    """Every cell of a table, row by row."""
    found = []
    for row in table.rows:
        count = table.count(row, replications)
        places = [table.place(row.method, r + 1, sweeps) for r in range(count)]
        for column in table.columns:
            values = np.array([fits[place].get(column.name, math.nan) for place in places])
            found.append(_cell(table, row, column, values))
    return found


def _cell(table: Table, row: Row, column: Column, values: np.ndarray) -> Cell:
    count = len(values)
    if column.median:
        return Cell(row, column, float(np.median(values)), math.nan, count)
    error = float(values.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan
    paper = table.paper.get((row.method, column.name), math.nan)
    cell = Cell(row, column, float(values.mean()), error, count, paper)
    return Cell(row, column, cell.value, error, count, paper, mark(cell, table.replications))


def frame(found: list[Cell]) -> pd.DataFrame:
    """The cells, a line each."""
    return pd.DataFrame(
        {
            "method": [cell.row.label for cell in found],
            "in_the_paper": [cell.row.paper for cell in found],
            "quantity": [cell.column.label for cell in found],
            "value": [cell.value for cell in found],
            "monte_carlo_error": [cell.error for cell in found],
            "data_sets": [cell.count for cell in found],
            "paper": [cell.paper for cell in found],
            "mark": [cell.mark for cell in found],
        }
    ).dropna(subset="value")


def single_fits(
    table: Table, fits: Fits, replications: int, sweeps: tuple[int, int] | None
) -> pd.DataFrame:
    """What every fit came to, a line each, without its seconds, which no two runs share."""
    lines = []
    for place in table.places(replications, sweeps):
        found = {name: value for name, value in fits[place].items() if name != "seconds"}
        lines.append({"replication": place[2], "method": place[1], **found})
    return pd.DataFrame(lines)


def seconds(
    table: Table, fits: Fits, replications: int, sweeps: tuple[int, int] | None
) -> dict[str, float]:
    """The median processor seconds of a fit, by method."""
    found = {}
    for row in table.rows:
        numbers = range(1, table.count(row, replications) + 1)
        own = [fits[table.place(row.method, number, sweeps)]["seconds"] for number in numbers]
        found[row.label] = float(np.median(own))
    return found


def page(table: Table, found: list[Cell], command: str, sweeps: tuple[int, int] | None) -> str:
    """The page of a table: the paper's rows, then ours."""
    count, (tune, draws) = found[0].count, sweeps or table.sweeps
    ours = [cell for cell in found if not cell.row.paper]
    lines = [
        f"# {title(table.name)}: {table.title}",
        "",
        f"`{command}`: data sets 1 to {count}, whose number is the seed (the paper has "
        f"{table.replications}); one chain of {tune} + {draws} sweeps a fit.",
        "",
        *_grid([cell for cell in found if cell.row.paper], "the paper's methods"),
        *_grid(ours, f"beyond the paper, data sets 1 to {ours[0].count}" if ours else ""),
        LEGEND,
    ]
    return "\n".join([*lines, *(["", table.note] if table.note else []), ""])


def title(name: str) -> str:
    """ "Table S1" of "tableS1"."""
    word = name.rstrip("S0123456789")
    return f"{word.capitalize()} {name[len(word) :]}"


def _grid(found: list[Cell], heading: str) -> list[str]:
    if not found:
        return []
    columns = list(dict.fromkeys(cell.column for cell in found))
    lines = [
        f"| {heading} | {' | '.join(column.label for column in columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for row in dict.fromkeys(cell.row for cell in found):
        own = [shown(cell) for cell in found if cell.row == row]
        lines.append(f"| {row.label} | {' | '.join(own)} |")
    return [*lines, ""]


def shown(cell: Cell) -> str:
    """A cell as a reader sees it; nothing where nothing was measured."""
    if math.isnan(cell.value):
        return ""
    digits = cell.column.digits
    text = f"{cell.value:.{digits}f}"
    if not math.isnan(cell.error):
        text += f" ± {cell.error:.{digits}f}"
    if math.isnan(cell.paper):
        return text
    return f"{text} ({cell.paper:.{digits}f}{', ' + cell.mark if cell.mark else ''})"

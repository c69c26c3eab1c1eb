"""What a table and a figure of the paper are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What a fit came to, by name: numbers only, so that a line of JSON holds it.
Measured = dict[str, float]


@dataclass(frozen=True)
class Column:
    """A column of a table: what was measured, and what is good.

    ``aim`` is "high", "low", or the level that a coverage should reach; None: not to be compared.
    ``median``: of the replications, where the mean would speak of the worst of them.
    """

    name: str
    label: str
    aim: str | float | None = None
    digits: int = 3
    median: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table: a method, and whether the paper has it (``paper``) or we add it."""

    method: str
    label: str
    paper: bool = True


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    A fit is known by its place, ``(scenario, method, replication, tune, draws)``, and
    ``measured(*place)`` runs it; tables of one ``scenario`` share their fits. ``paper`` holds the
    published means, by method and column, of ``replications`` data sets. Rows that the paper does
    not have are run on the first ``beyond`` data sets at most.
    """

    name: str
    title: str
    scenario: str
    measured: Callable[..., Measured]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    paper: Mapping[tuple[str, str], float]
    replications: int
    sweeps: tuple[int, int]
    beyond: int = 20
    note: str = ""

    def count(self, row: Row, replications: int) -> int:
        """On how many data sets a row is run."""
        return replications if row.paper else min(replications, self.beyond)

    def places(self, replications: int, sweeps: tuple[int, int] | None) -> list[tuple[Any, ...]]:
        """All fits, replication by replication: a shorter run is the start of a longer one."""
        return [
            self.place(row.method, number, sweeps)
            for number in range(1, replications + 1)
            for row in self.rows
            if number <= self.count(row, replications)
        ]

    def place(
        self, method: str, replication: int, sweeps: tuple[int, int] | None
    ) -> tuple[Any, ...]:
        """Where a fit stands."""
        return (self.scenario, method, replication, *(sweeps or self.sweeps))


@dataclass(frozen=True)
class Settings:
    """What a figure may use: files of the user's, a folder for its fits, sweeps, cores.

    ``files`` by ending, such as ".csv"; ``sweeps``: (tune, draws), None for the figure's own.
    """

    folder: Path
    files: Mapping[str, Path] = field(default_factory=dict)
    outline: Path | None = None
    sweeps: tuple[int, int] | None = None
    cores: int = 1


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: ``drawn(settings)`` returns a matplotlib figure and its caption."""

    name: str
    title: str
    drawn: Callable[[Settings], tuple[Any, str]]

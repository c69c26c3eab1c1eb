"""How far a run is, and how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ncbayes_paper.study import Measured

# Seconds between lines where there is no terminal.
EVERY = 30.0
Place = tuple[Any, ...]


class Clock:
    """The seconds left: what the fits still to come cost, by what those of their kind have cost.

    ``known`` are seconds of fits that earlier runs have kept.
    """

    def __init__(self, places: Sequence[Place], known: dict[Place, Measured]) -> None:
        self.left = [place for place in dict.fromkeys(places) if place not in known]
        self.done = len(set(places)) - len(self.left)
        self.total = len(set(places))
        self._costs: dict[tuple[Any, ...], list[float]] = {}
        self._spent = 0.0
        self._began = time.monotonic()
        for place, found in known.items():
            self._note(place, found)

    def tell(self, place: Place, found: Measured) -> None:
        """A fit is done."""
        self.left.remove(place)
        self.done += 1
        self._note(place, found)
        self._spent += found["seconds"]

    def _note(self, place: Place, found: Measured) -> None:
        self._costs.setdefault(_kind(place), []).append(found["seconds"])

    def seconds_left(self) -> float:
        """NaN before the first fit is done."""
        if not self._spent > 0:
            return float("nan")
        means = {kind: float(np.mean(costs)) for kind, costs in self._costs.items()}
        usual = float(np.mean(list(means.values())))
        cost = sum(means.get(_kind(place), usual) for place in self.left)
        return cost * (time.monotonic() - self._began) / self._spent

    def line(self) -> str:
        """ "37 of 200 fits, about 12 min left"."""
        left = self.seconds_left()
        return f"{self.done} of {self.total} fits, {duration(left)}"


def _kind(place: Place) -> tuple[Any, ...]:
    """Fits that cost the same: all but the number of the replication."""
    return (*place[:2], *place[3:])


def duration(seconds: float) -> str:
    """In words, roughly."""
    if not seconds >= 0:
        return "time left unknown"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return (
        f"about {seconds / 60:.0f} min left"
        if seconds < 5400
        else (f"about {seconds / 3600:.1f} h left")
    )


@contextmanager
def watched(clock: Clock) -> Iterator[Callable[[Place, Measured], None]]:
    """What to call after each fit: a bar on a terminal, elsewhere a line now and then."""
    if sys.stderr.isatty():
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} %"),
        )
        from rich.console import Console

        with Progress(*columns, console=Console(stderr=True)) as bars:
            task = bars.add_task(clock.line(), total=clock.total, completed=clock.done)

            def moved(place: Place, found: Measured) -> None:
                clock.tell(place, found)
                bars.update(task, completed=clock.done, description=clock.line())

            yield moved
        return
    last = [time.monotonic()]

    def told(place: Place, found: Measured) -> None:
        clock.tell(place, found)
        if time.monotonic() - last[0] > EVERY or not clock.left:
            last[0] = time.monotonic()
            print(clock.line(), file=sys.stderr, flush=True)

    yield told

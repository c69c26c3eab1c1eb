"""How far the chains are: a small shared file that they write, and what a person sees of it."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

# Bars are drawn four times a second; plain lines, for logs, every ten seconds.
POLL_SECONDS = 0.25
LINE_SECONDS = 10.0
STOP = 0


@dataclass(frozen=True)
class ProgressEvent:
    """How far one chain is, as passed to ``progress=callable``."""

    chain: int
    sweep: int
    sweeps: int
    seconds: float
    """Since the call began."""
    rate: float
    """Sweeps a second of this chain while it ran; not counting what a checkpoint held."""
    stage: str = "chain"
    """"chain", or "noise" while noise is adapted or chosen, before the chains start."""


class Board:
    """Counters in a file shared by processes: cell 0 is the stop flag, i + 1 the sweeps of chain i.

    One writer a cell and eight bytes a cell, so no locks are needed.
    """

    def __init__(self, path: Path, chains: int | None = None) -> None:
        if chains is not None:
            np.zeros(chains + 1, dtype=np.int64).tofile(path)
        self.path = path
        self._cells = np.memmap(path, dtype=np.int64, mode="r+")

    def report(self, chain: int, sweep: int) -> None:
        """Chain ``chain`` has done ``sweep`` sweeps."""
        self._cells[chain + 1] = sweep

    def sweeps(self, chain: int) -> int:
        """How many sweeps a chain has done."""
        return int(self._cells[chain + 1])

    def stop(self) -> None:
        """Ask every chain to return what it has."""
        self._cells[STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether the chains were asked to stop."""
        return bool(self._cells[STOP])


Progress = bool | Callable[[ProgressEvent], object] | None


class Display(Protocol):
    """Something that shows progress events."""

    def show(self, events: list[ProgressEvent]) -> None: ...

    def close(self) -> None: ...


@contextmanager
def watched(chains: int, sweeps: int, progress: Progress, stage: str = "chain") -> Iterator[Board]:
    """A board whose progress is shown until the block ends."""
    with tempfile.TemporaryDirectory(prefix="ncbayes-", ignore_cleanup_errors=True) as folder:
        board = Board(Path(folder) / "board", chains)
        if progress is False:
            yield board
            return
        display: Display = (
            Calls(progress) if callable(progress) else Bars() if _is_terminal() else Lines()
        )
        done = threading.Event()
        thread = threading.Thread(target=_watch, args=(board, chains, sweeps, stage, display, done))
        thread.start()
        try:
            yield board
        finally:
            done.set()
            thread.join()


def _watch(
    board: Board, chains: int, sweeps: int, stage: str, display: Display, done: threading.Event
) -> None:
    began = time.monotonic()
    clocks = [Clock() for _ in range(chains)]

    def events() -> list[ProgressEvent]:
        seconds = time.monotonic() - began
        done = [board.sweeps(i) for i in range(chains)]
        return [
            ProgressEvent(i, sweep, sweeps, seconds, clock.rate(sweep, seconds), stage)
            for i, (sweep, clock) in enumerate(zip(done, clocks, strict=True))
        ]

    while not done.wait(POLL_SECONDS):
        display.show(events())
    display.show(events())
    display.close()


class Clock:
    """The rate of one chain, from the moment it was first and last seen to move."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)

    def rate(self, sweep: int, seconds: float) -> float:
        """Sweeps a second so far, given how far the chain is now."""
        if sweep > self._last[0]:
            self._last = (sweep, seconds)
            self._first = self._first or self._last
        if self._first is None or self._first == self._last:
            return 0.0
        return (self._last[0] - self._first[0]) / (self._last[1] - self._first[1])


def _is_terminal() -> bool:
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


class Bars:
    """One rich bar a chain with rate and time left."""

    def __init__(self) -> None:
        from rich import progress as rich_progress
        from rich.console import Console

        self._bars = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(bar_width=None),
            rich_progress.TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            rich_progress.TextColumn("{task.fields[rate]:>6.0f}/s"),
            rich_progress.TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            expand=True,
        )
        self._tasks: dict[int, rich_progress.TaskID] = {}
        self._bars.start()

    def show(self, events: list[ProgressEvent]) -> None:
        for event in events:
            if event.chain not in self._tasks:
                name = f"chain {event.chain}" if event.stage == "chain" else event.stage
                self._tasks[event.chain] = self._bars.add_task(name, total=event.sweeps, rate=0.0)
            self._bars.update(self._tasks[event.chain], completed=event.sweep, rate=event.rate)

    def close(self) -> None:
        self._bars.stop()


class Lines:
    """A line now and then, for logs; nothing at all for a run shorter than that."""

    def __init__(self) -> None:
        self._next = LINE_SECONDS

    def show(self, events: list[ProgressEvent]) -> None:
        if not events or events[0].seconds < self._next:
            return
        self._next = events[0].seconds + LINE_SECONDS
        done = sum(event.sweep for event in events)
        total = sum(event.sweeps for event in events)
        rate = sum(event.rate for event in events if event.sweep < event.sweeps)
        left = f"{(total - done) / rate:.0f} s left" if rate else "time left unknown"
        each = " ".join(f"{event.sweep}/{event.sweeps}" for event in events)
        what = "sweeps" if events[0].stage == "chain" else f"{events[0].stage}, sweeps"
        print(f"ncbayes: {what} {each}, {rate:.0f}/s, {left}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


def tell(lines: Iterable[str], progress: Progress) -> None:
    """Print lines on the standard error stream, unless ``progress`` asks for silence."""
    if progress is False:
        return
    for line in lines:
        print(f"ncbayes: {line}", file=sys.stderr, flush=True)


class Calls:
    """Hands every event to the user's function; a failing function never costs the run."""

    def __init__(self, function: Callable[[ProgressEvent], object]) -> None:
        self._function: Callable[[ProgressEvent], object] | None = function

    def show(self, events: list[ProgressEvent]) -> None:
        for event in events:
            if self._function is None:
                return
            try:
                self._function(event)
            except Exception as error:
                self._function = None
                warnings.warn(
                    f"the progress function failed ({type(error).__name__}: {error}) and is not "
                    "called again; the fit goes on",
                    stacklevel=2,
                )

    def close(self) -> None:
        pass

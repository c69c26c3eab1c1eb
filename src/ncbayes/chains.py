"""Running chains: warm-up, storage, checkpoints, interrupts, parallel processes."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import Block, InputError, Segment
from ncbayes.checkpoints import Arrays, ChainFolder, ChainState, RunFolder
from ncbayes.contrast import Kernel, kernel_of
from ncbayes.problem import Problem
from ncbayes.progress import Board, Progress, watched
from ncbayes.threads import single_threaded, single_threaded_children

# A crash costs at most this much work, and a save of a few ms then costs far less than 1 %.
SAVE_SECONDS = 30.0
# Between two looks at the progress, the clock and Ctrl-C; no sweep depends on it.
BLOCK_SECONDS = 0.2


@dataclass(frozen=True)
class Chain:
    """What a chain has come to: its state, its kept draws by name, and how many were asked for."""

    index: int
    state: ChainState
    draws: Arrays
    asked: int

    @property
    def kept(self) -> int:
        """The number of draws there are."""
        return min(self.state.kept, self.asked)

    @property
    def complete(self) -> bool:
        """Whether all draws are there."""
        return self.kept == self.asked


@dataclass(frozen=True)
class Job:
    """One chain to run: what, how far, from where, and whom to tell."""

    problem: Problem
    plan: tuple[Segment, ...]
    index: int
    board: Path
    folder: ChainFolder | None
    before: Chain | None
    parent: int
    host: str
    save_seconds: float


def run(
    problem: Problem,
    plan: tuple[Segment, ...],
    chains: int,
    *,
    cores: int,
    folder: RunFolder | None,
    progress: Progress,
    before: Sequence[Chain] = (),
) -> list[Chain]:
    """Run chains 0, 1, ... along the plan; the result is the same for any ``cores``.

    ``before`` holds chains to go on from. After Ctrl-C every chain returns what it has.
    """
    known = {chain.index: chain for chain in before}
    sweeps = sum(segment.tune + segment.draws for segment in plan)
    with watched(chains, sweeps, progress) as board, _stop_on_interrupt(board):
        jobs = [
            Job(
                problem,
                plan,
                index,
                board.path,
                folder.chain(index) if folder else None,
                known.get(index),
                os.getpid(),
                platform.node(),
                SAVE_SECONDS,
            )
            for index in range(chains)
        ]
        if cores == 1 or len(jobs) == 1:
            done = [run_chain(job) for job in jobs]
        else:
            done = _in_processes(jobs, cores, board)
    return [chain for chain in done if chain is not None]


@contextmanager
def before_chains(sweeps: int, progress: Progress) -> Iterator[Callable[[], None]]:
    """For work before the chains start: a function to call before every sweep; it obeys Ctrl-C."""
    with (
        single_threaded(),
        watched(1, sweeps, progress, "noise") as board,
        _stop_on_interrupt(board),
    ):

        def report() -> None:
            board.report(0, board.sweeps(0) + 1)
            if board.stopped:
                raise KeyboardInterrupt("interrupted while the noise was adapted, before any draw")

        yield report


def _in_processes(jobs: list[Job], cores: int, board: Board) -> list[Chain | None]:
    from pickle import PicklingError

    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    done: list[Chain | None] = []
    try:
        with _interrupts_kept_from_children(), single_threaded_children():
            parallel = Parallel(
                n_jobs=min(cores, len(jobs)), max_nbytes=None, return_as="generator"
            )
            results = parallel(delayed(run_chain)(job) for job in jobs)
        done.extend(results)
    except BrokenProcessPool as error:
        if not board.stopped:
            raise RuntimeError(
                "the process of a chain was killed, most often because memory ran out; use fewer "
                "cores, and checkpoint=folder to resume instead of starting over"
            ) from error
    except PicklingError as error:
        raise InputError(
            "model, noise, prior or engine can't be sent to another process (it holds a lock, an "
            "open file or the like); use cores=1"
        ) from error
    return done


@contextmanager
def _interrupts_kept_from_children() -> Iterator[None]:
    """Processes started in this block never see Ctrl-C, which is the parent's to act on.

    They inherit the blocked signal, also while they are still importing; the parent gets a
    Ctrl-C of that time when the block ends.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Starting these helpers unblocks the signal again, so they must be running already.
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    resource_tracker.ensure_running()
    loky_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_chain(job: Job) -> Chain | None:
    """Run one chain to the end of its plan, or until asked to stop; None if it never began."""
    with single_threaded(), _deaf_to_interrupts(job):
        return _run_chain(job)


def _run_chain(job: Job) -> Chain | None:
    board = Board(job.board) if job.board.exists() else None
    if board is not None and board.stopped:
        return None
    is_worker = os.getpid() != job.parent and os.getppid() == job.parent
    if not is_worker and _orphaned(job):
        os._exit(1)  # the parent was killed before this worker began
    asked = sum(segment.draws for segment in job.plan)
    rng = job.problem.chain_rng(job.index)
    state, draws, saved, kernel = _begin(job, rng)
    rng.bit_generator.state = state.rng
    store = Store(asked, draws)
    noise, draw, sweep, kept = state.noise, state.draw, state.sweep, state.kept
    lasting = getattr(job.problem.schedule, "lasting", False)

    def now() -> ChainState:
        return ChainState(sweep, kept, draw, noise, rng.bit_generator.state, job.plan)

    clock, block_size = time.monotonic(), 1
    while (at := _stretch(job.plan, sweep)) is not None:
        segment, keep, left = at
        if is_worker and os.getppid() != job.parent:
            os._exit(1)  # the parent was killed: a worker must not go on alone
        if board is not None:
            board.report(job.index, sweep)
            if board.stopped:
                break
        began = time.perf_counter()
        renewed = job.problem.renew(noise, segment, rng)
        if renewed is not noise:
            noise, kernel = renewed, kernel_of(job.problem.engine, job.problem.target(renewed))
        count = min(left, block_size) if lasting else 1
        block = kernel.sweeps(draw, rng, count)
        seconds = (time.perf_counter() - began) / count
        draw, sweep = block.last, sweep + count
        block_size = max(1, min(2 * block_size, int(BLOCK_SECONDS / max(seconds, 1e-9))))
        if keep:
            store.add(kept, block, segment.noise_set, seconds)
            kept += count
        if job.folder is not None and time.monotonic() - clock > job.save_seconds:
            saved = job.folder.save(now(), store.arrays, saved)
            clock = time.monotonic()
    if board is not None:
        board.report(job.index, sweep)
    if job.folder is not None and sweep > state.sweep:
        job.folder.save(now(), store.arrays, saved)
    return Chain(job.index, now(), store.arrays, asked)


def _begin(
    job: Job, rng: np.random.Generator
) -> tuple[ChainState, Arrays, tuple[int, ...], Kernel]:
    """Where the chain stands (in the checkpoint, in memory, at the start), and its kernel there."""
    problem = job.problem
    stored = job.folder.load(problem.source.fixed) if job.folder is not None else None
    if stored is not None:
        _check_plan(stored[0], job)
        return *stored, kernel_of(problem.engine, problem.target(stored[0].noise))
    if job.before is not None:
        state = job.before.state
        return state, job.before.draws, (0,), kernel_of(problem.engine, problem.target(state.noise))
    noise = problem.renew(None, job.plan[0], rng)
    kernel = kernel_of(problem.engine, problem.target(noise))
    draw = kernel.start(rng)
    return ChainState(0, 0, draw, noise, rng.bit_generator.state, job.plan), {}, (0,), kernel


def _check_plan(state: ChainState, job: Job) -> None:
    """Refuse a state that was reached by another plan, as when a fit is extended differently."""
    pairs = zip(_sweeps(state.plan), _sweeps(job.plan), strict=False)
    if any(
        (old.noise_set, old_kept) != (new.noise_set, new_kept)
        for (old, old_kept), (new, new_kept) in islice(pairs, state.sweep)
    ):
        raise InputError(
            f"the checkpoint {str(job.folder and job.folder.path)!r} was extended by another "
            "number of draws; extend by the same number, or fit in another folder"
        )


def _orphaned(job: Job) -> bool:
    """Whether the parent is gone; on another machine of a cluster that can't be known."""
    import psutil

    here = platform.node() == job.host and os.getpid() != job.parent
    return here and not psutil.pid_exists(job.parent)


def _sweeps(plan: tuple[Segment, ...]) -> Iterator[tuple[Segment, bool]]:
    """For every sweep, its segment and whether it is kept."""
    for segment in plan:
        for k in range(segment.tune + segment.draws):
            yield segment, k >= segment.tune


def _stretch(plan: tuple[Segment, ...], sweep: int) -> tuple[Segment, bool, int] | None:
    """The segment that a sweep is in, whether it is kept, and how many like it are left there."""
    for segment in plan:
        for keep, count in ((False, segment.tune), (True, segment.draws)):
            if sweep < count:
                return segment, keep, count - sweep
            sweep -= count
    return None


class Store:
    """Kept draws as arrays with one row a draw; allocated when the first one shows their shapes."""

    def __init__(self, size: int, before: Arrays) -> None:
        self._size = size
        self.arrays: dict[str, NDArray[Any]] = {}
        for name, values in before.items():
            self._allocate(name, values[0] if len(values) else values)
            rows = min(size, len(values))
            self.arrays[name][:rows] = values[:rows]

    def add(self, row: int, block: Block, noise_set: int, seconds: float) -> None:
        """Keep the draws of a block, from this row on."""
        count = len(block.coef)
        values: Mapping[str, Any] = {
            "coef": block.coef,
            **{f"scales/{name}": value for name, value in block.scales.items()},
            **{f"stats/{name}": value for name, value in block.stats.items()},
            "stats/noise_set": np.full(count, noise_set),
            "stats/sweep_seconds": np.full(count, seconds),
        }
        for name, value in values.items():
            if name not in self.arrays:
                self._allocate(name, value[0])
            self.arrays[name][row : row + count] = value

    def _allocate(self, name: str, like: Any) -> None:
        like = np.asarray(like)
        self.arrays[name] = np.zeros((self._size, *like.shape), dtype=like.dtype)


def longest_rectangle(chains: Sequence[Chain]) -> tuple[list[Chain], int]:
    """The chains and the number of draws of each that keep the most draws in all."""
    by_length = sorted(chains, key=lambda chain: -chain.kept)
    totals = [(k + 1) * chain.kept for k, chain in enumerate(by_length)]
    if not totals or max(totals) == 0:
        return [], 0
    count = int(np.argmax(totals)) + 1
    return sorted(by_length[:count], key=lambda chain: chain.index), by_length[count - 1].kept


@contextmanager
def _stop_on_interrupt(board: Board) -> Iterator[None]:
    """The first Ctrl-C asks the chains for what they have; a second one ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: object) -> None:
        if board.stopped:
            raise KeyboardInterrupt
        board.stop()

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _deaf_to_interrupts(job: Job) -> Iterator[None]:
    """A terminal sends Ctrl-C to worker processes too; only the parent may act on it."""
    if os.getpid() == job.parent or threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)

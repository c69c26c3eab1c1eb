"""Fits that are run once: a file keeps the finished ones, and they are read from there."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

import ncbayes as ncb

# How long a scheduler may take to answer.
WAIT_SECONDS = 20
# Called after each fit with its place and what was measured there.
Report = Callable[[tuple[Any, ...], Any], object]


def replications(
    measured: Callable[..., Any],
    places: Sequence[tuple[Any, ...]],
    cores: int,
    keep: Path | None,
    scheduler: str | None = None,
    report: Report = lambda place, found: None,
) -> list[Any]:
    """``measured(*place)`` for every place: those in the file ``keep`` read, the others run.

    A place is a tuple of strings and numbers; what is measured is anything that JSON holds. Each
    line of the file is a place and what was measured there, written as soon as it is done. A last
    line that a killed run left unfinished is passed over. ``scheduler``: the address of a Dask
    scheduler, whose workers then run the fits; a worker that dies is replaced by another.
    """
    done = finished(keep)
    missing = [place for place in dict.fromkeys(places) if place not in done]
    with _workers(cores, scheduler) as run:
        for place, found in run(delayed(_placed)(measured, place) for place in missing):
            done[place] = found
            if keep:
                with keep.open("a") as file:
                    file.write(json.dumps([place, found]) + "\n")
            report(place, found)
    return [done[place] for place in places]


def cells(
    measured: Callable[[str, int], Any],
    names: Collection[str],
    count: int,
    description: str,
    arguments: Sequence[str] | None = None,
) -> dict[tuple[Any, ...], Any]:
    """What was measured by cell and seed, as the command line of a study asks for it.

    ``--cells`` are words that names of cells hold; ``count`` is how many replications there are if
    none are asked for.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cells", nargs="+", help="words of cells; default: all")
    parser.add_argument("--first", type=int, default=1, help="seed of the first replication")
    parser.add_argument("--replications", type=int, default=count)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="file of finished fits")
    given = parser.parse_args(arguments)
    chosen = [name for name in names if given.cells is None or _named(name, given.cells, names)]
    if not chosen:
        parser.error(f"no cell holds any of {given.cells}; there are {', '.join(names)}")
    seeds = range(given.first, given.first + given.replications)
    places = [(cell, seed) for cell in chosen for seed in seeds]
    done = replications(measured, places, given.cores, given.keep)
    return dict(zip(places, done, strict=True))


def _named(name: str, words: Sequence[str], names: Collection[str]) -> bool:
    """Whether one of the words is the name, or is in it and no other's whole name."""
    return any(word == name or (word not in names and word in name) for word in words)


def finished(keep: Path | None) -> dict[tuple[Any, ...], Any]:
    """What a file holds, by place."""
    if keep is None or not keep.exists():
        return {}
    text = keep.read_text()
    if text and not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        keep.write_text(text)
    return {tuple(place): found for place, found in map(json.loads, text.splitlines())}


@contextmanager
def _workers(cores: int, scheduler: str | None) -> Iterator[Any]:
    """What runs calls in parallel and yields their results as they come."""
    # One by one: a batch would come back as a whole, and be lost as a whole.
    options = {"return_as": "generator_unordered", "batch_size": 1}
    if scheduler is None:
        yield Parallel(n_jobs=cores, **options)
        return
    with _client(scheduler) as client, parallel_config(backend="dask", client=client):
        yield Parallel(n_jobs=-1, **options)


def _client(scheduler: str) -> Any:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ncb.InputError(
            "--scheduler needs Dask's distributed; run: pip install 'ncbayes[cluster]'"
        ) from None
    try:
        return Client(scheduler, timeout=WAIT_SECONDS)
    except (OSError, ValueError) as error:
        raise ncb.InputError(
            f"--scheduler {scheduler!r} does not answer ({type(error).__name__}); give the "
            "address that dask scheduler prints, such as tcp://127.0.0.1:8786"
        ) from None


def _placed(measured: Callable[..., Any], place: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    # Sums in several threads round differently; so the numbers do not depend on the cores.
    with threadpool_limits(1):
        return place, measured(*place)

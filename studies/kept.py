"""Replications that are run once: a file keeps the finished ones, and they are read from there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed


def replications(
    measured: Callable[..., Any], places: Sequence[tuple], cores: int, keep: Path | None
) -> list[Any]:
    """``measured(*place)`` for every place: those in the file ``keep`` read, the others run.

    A place is a tuple of strings and numbers; what is measured is anything that JSON holds. Each
    line of the file is a place and what was measured there, written as soon as it is done. A last
    line that a killed run left unfinished is passed over.
    """
    done = _done(keep)
    missing = [place for place in places if place not in done]
    run = Parallel(n_jobs=cores, return_as="generator_unordered")
    for place, found in run(delayed(_placed)(measured, place) for place in missing):
        done[place] = found
        if keep:
            with keep.open("a") as file:
                file.write(json.dumps([place, found]) + "\n")
    return [done[place] for place in places]


def _done(keep: Path | None) -> dict[tuple, Any]:
    if keep is None or not keep.exists():
        return {}
    text = keep.read_text()
    if text and not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        keep.write_text(text)
    return {tuple(place): found for place, found in map(json.loads, text.splitlines())}


def _placed(measured: Callable[..., Any], place: tuple) -> tuple[tuple, Any]:
    return place, measured(*place)

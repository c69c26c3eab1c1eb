"""Chains on disk: plain arrays, written atomically, complete enough to go on bit for bit.

A folder holds ``run.json`` (what the run is) and for each chain ``state.npz`` and the draws so far
in files named by the draws they hold. A chain is a function of its seed, so a file's name
determines its draws, and two processes that write the same file write the same draws: a kill
at any moment, even with an orphaned process still writing, leaves the folder sound. ``fit.pickle``
holds model and data of a finished fit, for ``load(path, checkpoint=folder).extend``.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import Draw, FloatArray, InputError, NoiseSet, NoiseState, Segment

# The layout below. A folder of another layout is refused rather than misread.
LAYOUT = 1
UNFINISHED = ".writing-"
# What a loaded posterior goes on with.
FIT = "fit.pickle"
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ChainState:
    """A chain between two sweeps: everything that the next sweep depends on."""

    sweep: int
    kept: int
    draw: Draw
    noise: NoiseState
    rng: Mapping[str, Any]
    plan: tuple[Segment, ...] = ()


@dataclass(frozen=True)
class ChainFolder:
    """The files of one chain."""

    path: Path

    def save(self, state: ChainState, draws: Arrays, saved: tuple[int, ...]) -> tuple[int, ...]:
        """Write the draws since ``saved[-1]``, then the state; the new boundaries of the files."""
        self.path.mkdir(parents=True, exist_ok=True)
        if state.kept > saved[-1]:
            chunk: dict[str, Any] = {
                name: values[saved[-1] : state.kept] for name, values in draws.items()
            }
            _write(self._chunk(saved[-1], state.kept), lambda file: np.savez(file, **chunk))
            saved = (*saved, state.kept)
        record = _pack(state)
        record["saved"] = np.array(saved)
        _write(self.path / "state.npz", lambda file: np.savez(file, **record))
        return saved

    def load(
        self, fixed: Callable[[int], NoiseState]
    ) -> tuple[ChainState, Arrays, tuple[int, ...]] | None:
        """The last state saved and the draws up to it; None if there is none."""
        path = self.path / "state.npz"
        if not path.exists():
            return None
        record = _read(path)
        try:
            saved = tuple(int(each) for each in record.pop("saved"))
            state = _unpack(record, fixed)
        except (KeyError, ValueError) as error:
            raise _damaged(path) from error
        chunks = [_read(self._chunk(*pair)) for pair in pairwise(saved)]
        draws = {
            name: np.concatenate([chunk[name] for chunk in chunks])
            for name in (chunks[0] if chunks else {})
        }
        return state, draws, saved

    def _chunk(self, start: int, stop: int) -> Path:
        return self.path / f"draws-{start:08d}-{stop:08d}.npz"


@dataclass(frozen=True)
class RunFolder:
    """A checkpoint folder: which run it belongs to, and its chains."""

    path: Path

    def chain(self, index: int) -> ChainFolder:
        """The folder of chain ``index``."""
        return ChainFolder(self.path / f"chain-{index}")

    def keep(self, name: str, arrays: Arrays) -> None:
        """Write arrays to a file of the run."""
        values: dict[str, Any] = dict(arrays)
        _write(self.path / name, lambda file: np.savez(file, **values))

    def kept(self, name: str) -> dict[str, NDArray[Any]] | None:
        """The arrays of a file of the run; None if there is none."""
        return _read(self.path / name) if (self.path / name).exists() else None

    def keep_fit(self, fit: object) -> None:
        """Write all that goes on with the fit, code included; nothing if there is no way to."""
        from joblib.externals.loky.backend.reduction import dumps

        try:
            text = bytes(dumps(fit))
        except Exception:  # whatever a model of the user's holds: the chains are there
            return
        with contextlib.suppress(OSError):  # a full disk: the posterior counts for more
            _write(self.path / FIT, lambda file: file.write(text))

    def fit(self) -> Any:
        """What ``keep_fit`` wrote. Reading it runs code: only of folders that one trusts."""
        from joblib.externals.loky.backend.reduction import loads

        path = self.path / FIT
        if not path.is_file():
            raise InputError(
                f"checkpoint={str(self.path)!r} holds no finished fit to go on with; pass the "
                "folder that fit had as its checkpoint, or call fit with it again"
            )
        try:
            return loads(path.read_bytes())
        except Exception as error:  # another version of Python, of ncbayes or of the model
            raise InputError(
                f"the fit in checkpoint={str(self.path)!r} can't be read here "
                f"({type(error).__name__}: {error}); call fit with this checkpoint again, and "
                "extend what it returns"
            ) from error

    def stored(self) -> dict[str, Any] | None:
        """What run.json says; None in a new or empty folder."""
        if not self.path.exists():
            return None
        if self.path.is_dir():
            # What a kill during the very first write leaves behind does not count.
            if all(each.name.startswith(UNFINISHED) for each in self.path.iterdir()):
                return None
            record = _json(self.path / "run.json")
            if "layout" in record and str(record.get("seed")).isdigit():
                return record
        raise InputError(
            f"checkpoint={str(self.path)!r} is in use for something else; "
            "name a new or empty folder"
        )

    def claim(self, identity: Mapping[str, Any]) -> None:
        """Make the folder this run's, or refuse, naming what differs from the run it holds."""
        stored = self.stored()
        record = {"layout": LAYOUT, **identity}
        for left in self.path.rglob(f"{UNFINISHED}*"):
            left.unlink(missing_ok=True)  # by a kill; a run has one process that starts it
        if stored is None:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                text = json.dumps(record, indent=1).encode()
                _write(self.path / "run.json", lambda file: file.write(text))
            except OSError as error:
                raise InputError(
                    f"checkpoint={str(self.path)!r} can't be written: {error.strerror}"
                ) from error
            return
        changed = [name for name in record if stored.get(name) != record[name]]
        if changed:
            details = ", ".join(
                _difference(name, stored.get(name), record[name]) for name in changed
            )
            raise InputError(
                f"checkpoint={str(self.path)!r} holds a run that differs in: {details}; call fit "
                "as before to resume it, or name another folder to start anew"
            )


def _json(path: Path) -> dict[str, Any]:
    """The object in a file of JSON; empty if there is none."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _difference(name: str, old: object, new: object) -> str:
    readable = not any(isinstance(each, str) and len(each) == 64 for each in (old, new))
    return f"{name} (was {old}, now {new})" if readable else name


def _pack(state: ChainState) -> dict[str, Any]:
    record: dict[str, Any] = {
        "sweep": state.sweep,
        "kept": state.kept,
        "coef": state.draw.coef,
        "rng": json.dumps(state.rng),
        "plan": np.array([astuple(segment) for segment in state.plan]).reshape(-1, 3),
        "noise": state.noise.index,
        "noise_sets": len(state.noise.sets),
    }
    record |= {f"scales/{name}": values for name, values in state.draw.scales.items()}
    record |= {f"memory/{name}": values for name, values in state.draw.memory.items()}
    if state.noise.index < 0:
        for g, each in enumerate(state.noise.sets):
            record |= {f"noise/{g}/{name}": values for name, values in vars(each).items()}
    return record


def _unpack(record: Mapping[str, NDArray[Any]], fixed: Callable[[int], NoiseState]) -> ChainState:
    scales, memory = (
        {
            name.removeprefix(prefix): values
            for name, values in record.items()
            if name.startswith(prefix)
        }
        for prefix in ("scales/", "memory/")
    )
    index = int(record["noise"])
    noise = fixed(index) if index >= 0 else NoiseState(_noise_sets(record), -1)
    return ChainState(
        sweep=int(record["sweep"]),
        kept=int(record["kept"]),
        draw=Draw(record["coef"], scales, memory=memory),
        noise=noise,
        rng=json.loads(str(record["rng"])),
        plan=tuple(Segment(*map(int, row)) for row in record["plan"]),
    )


def _noise_sets(record: Mapping[str, NDArray[Any]]) -> tuple[NoiseSet, ...]:
    def array(group: int, name: str) -> FloatArray:
        return record[f"noise/{group}/{name}"]

    return tuple(
        NoiseSet(array(g, "points"), array(g, "log_density"), array(g, "log_density_at_data"))
        for g in range(int(record["noise_sets"]))
    )


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # Opened here, because np.load leaves a damaged file open.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> InputError:
    return InputError(
        f"the checkpoint's file {str(path)!r} is missing or damaged; name a new folder"
    )


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """The file appears whole or not at all."""
    name = path.with_name(f"{UNFINISHED}{path.name}-{os.getpid()}-{threading.get_ident()}")
    try:
        with name.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise

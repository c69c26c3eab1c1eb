"""Folders of runs: what they hold, and that a fit which fails leaves all as it was."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ncbayes.base import InputError

RUN, CHECKPOINT, POSTERIOR = "run.toml", "checkpoint", "posterior.nc"
# What a run's folder may hold besides pictures and reports.
OURS = (RUN, CHECKPOINT, POSTERIOR, "summary.csv", "edges.csv")
PICTURES = (".png", ".pdf", ".svg", ".gif", ".jpg")
PAGES = (".html",)


def quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))


def before(out: Path) -> Path:
    """Where a run that is replaced waits until the new one is there."""
    place = out.resolve()
    return place.with_name(f".{place.name}.before")


@contextmanager
def new_folder(out: Path, overwrite: bool) -> Iterator[None]:
    """A folder for a run; if the block fails, all is again as it was before.

    A fit that stops with something to resume stays, unless it would replace another run.
    """
    check_folder(out, overwrite)
    waiting = before(out)
    missing = [each for each in (out, *out.parents) if not each.exists()]
    if out.is_dir() and any(out.iterdir()):
        _set_aside(out, waiting)
    try:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"can't make the folder {str(out)!r}: {error.strerror}") from error
        yield
    except BaseException as error:
        if not _stays(out, error):
            _empty(out)
            for each in missing:
                with suppress(OSError):  # others may have put something there
                    each.rmdir()
            _bring_back(waiting, out)
        raise


def _stays(out: Path, error: BaseException) -> bool:
    """Whether what a fit that failed has left is worth more than what was there before."""
    if (out / POSTERIOR).exists():
        return True
    if not isinstance(error, Exception):  # Ctrl-C
        return (out / RUN).exists()
    begun = (out / CHECKPOINT).is_dir() and any((out / CHECKPOINT).iterdir())
    return begun and not isinstance(error, InputError) and not before(out).is_dir()


def _set_aside(out: Path, waiting: Path) -> None:
    """Let a run wait elsewhere; of two, that which is finished."""
    if waiting.is_dir() and any(waiting.iterdir()):
        if not (out / POSTERIOR).exists():
            _empty(out)
            return
        shutil.rmtree(waiting)
    try:
        _move_all(out, waiting)
    except BaseException:
        _bring_back(waiting, out)
        raise


def _bring_back(waiting: Path, out: Path) -> None:
    if waiting.is_dir():
        _move_all(waiting, out)
        waiting.rmdir()


def _move_all(source: Path, target: Path) -> None:
    # Not the folder itself: it may be a link, or the folder in which the user stands.
    target.mkdir(parents=True, exist_ok=True)
    for each in list(source.iterdir()):
        each.rename(target / each.name)


def _empty(folder: Path) -> None:
    for each in list(folder.iterdir()) if folder.is_dir() else ():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink()


def check_folder(out: Path, overwrite: bool) -> None:
    """Refuse a folder that holds something else than a run, or a run if it may not be replaced."""
    if not out.is_dir():
        if out.exists():
            raise InputError(f"{str(out)!r} is a file; --out must be the name of a folder")
        return
    held = sorted(each.name for each in out.iterdir())
    other = [name for name in held if not _is_ours(name)]
    if other or (held and RUN not in held):
        raise InputError(
            f"{str(out)!r} holds {(other or held)[0]!r}, which is not a run's; name another folder "
            "by --out"
        )
    if held and not overwrite:
        unfinished = POSTERIOR not in held
        raise InputError(
            f"{str(out)!r} holds a run"
            + (
                f" that is not finished (ncbayes resume {quoted(out)} goes on)"
                if unfinished
                else ""
            )
            + "; name another folder by --out, or pass --overwrite"
        )


def _is_ours(name: str) -> bool:
    # A file that is being written has a name of its own, which stays if the writer is killed.
    if name.startswith(".") and name.endswith(".part"):
        name = name[1:].removesuffix(".part")
    return name in OURS or name.lower().endswith(PICTURES + PAGES)

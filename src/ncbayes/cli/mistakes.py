"""Errors and warnings in the words of who runs the command: rows as the file counts them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ncbayes.base import InputError, shown
from ncbayes.cli.specs import Job


@contextmanager
def in_the_users_words(job: Job, numbers: Mapping[str | None, Any]) -> Iterator[None]:
    """Errors count rows as the file does, and those in a file of the user's are their mistake."""
    try:
        yield
    except InputError as error:
        raise InputError(with_rows_of_the_file(str(error), numbers)) from error
    except (OSError, MemoryError):
        raise
    except Exception as wrong:
        raise _theirs(job, wrong) from wrong


def with_rows_of_the_file(line: str, numbers: Mapping[str | None, Any]) -> str:
    """The line with the numbers that rows have in the file, where it counts rows from 0."""
    inside = [each for each in numbers if each and line.startswith(f"in group {shown(each)}: ")]
    rows = numbers.get(inside[0] if inside else None, ())

    def of_file(found: re.Match[str]) -> str:
        row = int(found[1])
        if row >= len(rows):
            return found[0]
        end = found[2] if found[2] == " of the data" else ""
        return f"row {rows[row]} (counted from 1, without the names){end}"

    return re.sub(r"\brow (\d+)( \(counted from 0\)| of the data)", of_file, line)


def _theirs(job: Job, wrong: Exception) -> Exception:
    """An error that came up in a file of the user's, as their mistake; another one as it is."""
    frames = traceback.extract_tb(wrong.__traceback__)
    for name in job.files():
        lines = [
            frame.lineno for frame in frames if frame.filename == str(job.path(name).resolve())
        ]
        if lines:
            return InputError(
                f"{Path(name).name} failed in line {lines[-1]}: {type(wrong).__name__}: {wrong}"
            )
    return wrong

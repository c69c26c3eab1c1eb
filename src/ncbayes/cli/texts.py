"""Tables in text files: their separators, the names of their columns, and their gaps."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncbayes.base import InputError

if TYPE_CHECKING:
    import pandas as pd

# Bytes at the start of a file that tell whether it is text.
LOOKED_AT = 1 << 16
# Cells without a value, and words that are none among numbers but may be labels among words.
GAPS, WORDS_FOR_GAPS = ("", "nan"), ("na", "n/a", "<na>", "#n/a", "null", "none")


def read(path: Path, labels: Collection[str]) -> pd.DataFrame:
    """The table in a text file, whose columns ``labels`` stay as they are written."""
    import pandas as pd

    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
    # The last line may end within a character.
    lines = start.rpartition(b"\n")[0] if len(start) == LOOKED_AT else start
    try:
        text = lines.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"{path.name} is not text; save the table as CSV in UTF-8")
    separator, cells = _first_row(text)
    nameless = _are_numbers(cells)
    names = [f"x{k + 1}" if nameless else cell or f"Unnamed: {k}" for k, cell in enumerate(cells)]
    check_differ(path, names)
    try:
        with warnings.catch_warnings():
            # Of values beyond the names of columns, which would be left out.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path, sep=separator, header=None if nameless else 0, names=names, index_col=False,
                encoding="utf-8-sig", skipinitialspace=True, low_memory=False,
                converters={name: _marked for name in labels if name in names},
            )  # fmt: skip
    # EmptyDataError, ParserError and UnicodeDecodeError are all of this class.
    except (ValueError, pd.errors.ParserWarning) as wrong:
        reason = " ".join(str(wrong).split()).removeprefix("Error tokenizing data. C error: ")
        raise InputError(
            f"{path.name} cannot be read as a table ({reason}); all lines must have as many values "
            "as the first"
        ) from wrong
    for name in set(labels) & set(names):
        frame[name] = _without_gaps(frame[name].str[1:])
    if nameless:
        frame = frame.dropna(axis=1, how="all")
    return frame


def _marked(cell: str) -> str:
    # pandas takes NA for a gap even in what a converter returns, so that it must not see it.
    return f"={cell.strip()}"


def _first_row(text: str) -> tuple[str, list[str]]:
    """The separator of a table, and the cells of its first row."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    # A separator in quotes separates nothing.
    separator = max(",\t;", key=re.sub(r'"[^"]*("|$)', "", first).count)
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    cells = next((row for row in rows if len(row) > 1 or "".join(row).strip()), [])
    return separator, [cell.strip() for cell in cells]


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether a first row is data: numbers, of which some but not all may be missing."""
    present = [cell for cell in cells if cell.lower() not in (*GAPS, *WORDS_FOR_GAPS)]
    # The names that pandas gives to rows and columns that have none.
    written_by_pandas = cells[:1] == [""] and present == [str(k) for k in range(len(cells) - 1)]
    return bool(present) and all(map(is_number, present)) and not written_by_pandas


def is_number(cell: str) -> bool:
    """Whether text is a number, which may be infinite or none."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _without_gaps(texts: pd.Series) -> pd.Series:
    """Labels as they are written, with gaps for those that are none."""
    import pandas as pd

    lower = texts.str.lower()
    texts = texts.astype(object).mask(lower.isin(GAPS))
    words = lower.isin(WORDS_FOR_GAPS)
    others = texts[~words].dropna()
    if len(others) and pd.to_numeric(others, errors="coerce").notna().all():
        texts = texts.mask(words)
    return texts


def check_differ(path: Path, names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InputError(f"{path.name} has two columns called {twice[0]!r}; names must differ")

"""Places and times of incidents, from the CSV files of Washington DC's crime portal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import InputError, shown
from ncbayes.dates import DateStyle, checked_style

if TYPE_CHECKING:
    import pandas as pd

DATE, METHOD, OFFENSE = "REPORT_DAT", "METHOD", "OFFENSE"
PLACE = ("LONGITUDE", "LATITUDE")
NEEDED = (DATE, METHOD, OFFENSE, "LATITUDE", "LONGITUDE")
FARTHEST = {"LONGITUDE": 180.0, "LATITUDE": 90.0}
GUN, ASSAULT = "GUN", "ASSAULT W/DANGEROUS WEAPON"
# Z, +00 or -05:00 after the seconds; the minus of a date without a clock is none.
ZONE = r"(:\d\d(?:\.\d+)?)\s*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"


@dataclass(frozen=True, eq=False)
class Incidents:
    """Where and when incidents were, one row each, in the order of the file.

    ``points``, a frame with the columns LONGITUDE and LATITUDE in degrees; ``times``, a series of
    dates without time zone, with the clock as the file writes it or that of ``tz``; ``kinds``,
    a frame with the columns METHOD and OFFENSE; ``dropped``, how many rows of the wanted kinds were
    left out for "missing coordinates" and for "missing dates" (for both: counted as the former);
    ``outline``, the area as a GeoJSON polygon, or None.
    """

    points: pd.DataFrame
    times: pd.Series
    kinds: pd.DataFrame
    dropped: Mapping[str, int]
    outline: Mapping[str, Any] | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file in the portal's format, to the second; the outline is not in it."""
        import pandas as pd

        named = isinstance(path, str | os.PathLike)
        if not named or not Path(path).parent.is_dir() or Path(path).is_dir():
            raise InputError(
                f"can't save to {shown(path)}: it must be a file in a folder that exists"
            )
        dates = self.times.dt.strftime("%Y-%m-%dT%H:%M:%SZ").rename(DATE)
        table = pd.concat([dates, self.kinds, self.points], axis=1)
        table[list(NEEDED)].to_csv(path, index=False)


def load_crime(
    path: str | os.PathLike[str],
    *,
    method: str | None = GUN,
    offense: str | None = ASSAULT,
    tz: str | None = None,
) -> Incidents:
    """Incidents of one kind from a CSV file of the crime portal of Washington DC.

    The columns REPORT_DAT, METHOD, OFFENSE, LATITUDE and LONGITUDE must be there, in any order
    and case; others are ignored. ``method`` and ``offense`` say which rows to keep, whatever
    their case; None keeps all. The defaults are the paper's gun assaults (section 4.3).
    Dates are ISO, such as 2022-01-01T02:34:28Z or 2022/01/01 02:34:28+00; the clock is kept as it
    stands and the zone left out. With ``tz``, such as "America/New_York", dates with a zone are
    converted to it, and others are taken to be local already. Rows without coordinates or date are
    left out and counted.
    """
    style = checked_style(None, tz)
    for name, value in (("method", method), ("offense", offense)):
        if not (value is None or isinstance(value, str)):
            raise InputError(
                f"{name} must be one of the words in the file's column {name.upper()}, or None "
                f"for all rows, got {shown(value)}"
            )
    if not isinstance(path, str | os.PathLike) or not Path(path).is_file():
        raise InputError(f"there is no file {path}; pass the path of a CSV file")
    file = Path(path)
    rows = _chosen(file, _table(file), method, offense)
    places = _coordinates(file, rows)
    lost = places.isna().any(axis=1)
    undated = rows[DATE].isna() & ~lost
    dropped = {"missing coordinates": int(lost.sum()), "missing dates": int(undated.sum())}
    kept = ~(lost | undated)
    if not kept.any():
        raise InputError(
            f"none of the {len(rows)} rows of {file.name} that were asked for has both coordinates "
            "and a date: pass another method or offense, or another file"
        )
    return Incidents(
        points=places[kept].reset_index(drop=True),
        times=_dates(file, rows.loc[kept, DATE], style).reset_index(drop=True),
        kinds=rows.loc[kept, [METHOD, OFFENSE]].reset_index(drop=True),
        dropped=dropped,
    )


def _table(file: Path) -> pd.DataFrame:
    """The columns needed, as text without spaces at the ends; empty text is missing."""
    import pandas as pd

    try:
        table = pd.read_csv(file, dtype=str)
    # EmptyDataError, ParserError and UnicodeDecodeError are all of this class.
    except ValueError as wrong:
        reason = " ".join(str(wrong).split())
        raise InputError(
            f"{file.name} cannot be read as a CSV file ({reason}); download it again, or save it "
            "as CSV in UTF-8"
        ) from wrong
    columns: dict[str, Any] = {}
    for position, name in enumerate(table.columns):
        columns.setdefault(str(name).strip().upper(), position)
    absent = [name for name in NEEDED if name not in columns]
    if absent:
        raise InputError(
            f"{file.name} has no column {' and none '.join(absent)}; it needs {', '.join(NEEDED)}, "
            f"and has {shown(', '.join(map(str, table.columns)), most=200)}"
        )
    chosen = table.iloc[:, [columns[name] for name in NEEDED]].set_axis(list(NEEDED), axis=1)
    stripped = chosen.apply(lambda column: column.astype("string").str.strip())
    return stripped.mask(stripped == "")


def _chosen(
    file: Path, table: pd.DataFrame, method: str | None, offense: str | None
) -> pd.DataFrame:
    """The rows of this method and offense."""
    keep = np.ones(len(table), dtype=bool)
    for name, word in ((METHOD, method), (OFFENSE, offense)):
        if word is not None:
            same = table[name].str.casefold() == word.strip().casefold()
            keep &= same.fillna(False).to_numpy(bool)
    if keep.any():
        return table[keep]
    if table.empty:
        raise InputError(f"{file.name} has column names but no rows; download it again")
    there = [
        f"{name} there is {shown(sorted(table[name].dropna().unique()), most=200)}"
        for name in (METHOD, OFFENSE)
    ]
    raise InputError(
        f"{file.name} has no rows with method={method!r} and offense={offense!r}; "
        f"{', '.join(there)}: pass one of these, or None for all"
    )


def _coordinates(file: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """Longitude and latitude as numbers; missing ones stay missing."""
    import pandas as pd

    columns = {}
    for name in PLACE:
        values = (
            pd.to_numeric(rows[name], errors="coerce")
            .astype("Float64")
            .to_numpy(np.float64, na_value=np.nan)
        )
        bad = rows[name].notna().to_numpy() & ~(np.abs(values) <= FARTHEST[name])
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{name} in {file.name} must be degrees between -{FARTHEST[name]:g} and "
                f"{FARTHEST[name]:g}, got {shown(rows[name].iloc[at])} in row "
                f"{rows.index[at] + 1} (counted from 1, without the names): correct or clear it"
            )
        columns[name] = values
    return pd.DataFrame(columns, index=rows.index)


def _dates(file: Path, texts: pd.Series, style: DateStyle) -> pd.Series:
    """The dates with their clocks, or with those of the style's zone, without zones."""
    import pandas as pd

    clocks = texts.str.replace(ZONE, r"\1", regex=True)
    dates = pd.to_datetime(clocks, format="ISO8601", errors="coerce")
    bad = dates.isna().to_numpy()
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{DATE} in {file.name} must hold dates such as 2022-01-01T02:34:28Z, got "
            f"{shown(texts.iloc[at])} in row {texts.index[at] + 1} (counted from 1, without the "
            f"names), and {int(bad.sum())} such values in all: correct or clear them"
        )
    if style.tz is not None:
        zoned = (clocks != texts).to_numpy(bool)
        moments = pd.to_datetime(texts[zoned], format="ISO8601", utc=True)
        dates[zoned] = moments.dt.tz_convert(style.tz).dt.tz_localize(None)
    return dates.rename("times").dt.as_unit("us")

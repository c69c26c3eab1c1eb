"""Rows of two tables that belong together: by label where both have labels, else by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from ncbayes.base import InputError, shown


def match_rows(table: Any, column: Any, names: tuple[str, str] = ("points", "times")) -> Any:
    """The column in the order of the table's rows.

    Where both are pandas objects, rows are matched by their labels, as pandas does: the same
    labels in another order are put in order, and other labels are an InputError. Labels that occur
    twice can be matched only where both indexes are equal. Anything else has no labels, and is
    matched by position. Lengths that differ are left for others to refuse.
    """
    rows, own = _index(table), _index(column)
    if rows is None or own is None or len(rows) != len(own) or rows.equals(own):
        return column
    first, second = names
    both = f"{first} and {second} have different indexes"
    remedy = (
        f"pass rows of one frame, or {second}.to_numpy() to match {second} to {first} by position"
    )
    strange = np.flatnonzero(~own.isin(rows))
    if len(strange):
        raise InputError(
            f"{both}, so their rows can't be matched by label, as pandas objects are: "
            f"{len(strange)} of {len(own)} labels of {second} are not among those of {first}, the "
            f"first {shown(own.tolist()[strange[0]])}; {remedy}"
        )
    if not (rows.is_unique and own.is_unique):
        twice = next(each for each in (rows, own) if not each.is_unique)
        label = twice.tolist()[int(np.argmax(twice.duplicated()))]
        raise InputError(
            f"{both}, and labels that occur twice, such as {shown(label)}, do not say which row "
            f"belongs to which; {remedy}"
        )
    return column.iloc[own.get_indexer(rows)]


def _index(table: Any) -> Any:
    """The labels of the rows of a pandas object; None for what has none."""
    # Lists and tuples have a method of the same name.
    index = getattr(table, "index", None)
    return index if hasattr(table, "iloc") and hasattr(index, "get_indexer") else None

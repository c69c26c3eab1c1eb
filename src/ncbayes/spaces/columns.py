"""Names of columns: what a table calls them, and in which order a model wants them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ncbayes.base import InputError, shown

# Names that one sentence lists.
MOST_LISTED = 8


def default_names(count: int) -> tuple[str, ...]:
    """x1, x2, ...: the names of columns that have none."""
    return tuple(f"x{j + 1}" for j in range(count))


def column_labels(data: Any) -> list[object]:
    """What a table calls its columns, in order; empty where it has no names for them.

    Frames of pandas and polars, tables of Arrow, structured arrays, and xarray's arrays (row,
    column) with a coordinate along the columns.
    """
    if isinstance(data, np.ndarray):
        return list(data.dtype.names or ())
    if hasattr(data, "coords") and hasattr(data, "dims"):
        last = data.dims[-1] if len(data.dims) == 2 else None
        return data[last].to_numpy().tolist() if last in data.coords else []
    if not hasattr(data, "to_numpy"):  # Arrow's tables; their columns are arrays
        return list(getattr(data, "column_names", ()))
    # The columns first: a frame with a column called "name" has an attribute of that name.
    if hasattr(data, "columns"):
        return list(data.columns)
    name = getattr(data, "name", None)
    return [] if name is None or name == "" else [name]


def named_columns(data: Any) -> tuple[str, ...]:
    """The names of a table's columns; empty where they have none, or are only counted from 0."""
    labels = column_labels(data)
    return () if labels == list(range(len(labels))) else tuple(map(str, labels))


def coordinate_names(model: Any) -> tuple[str, ...]:
    """The names of a model's coordinates, the nodes of a graphical one; empty without any."""
    nodes, space = getattr(model, "nodes", ()), model.space
    # The nodes of a model of whole graphs are no coordinates of its points.
    if hasattr(space, "from_objects") or not isinstance(nodes, list | tuple):
        return ()
    return tuple(map(str, nodes)) if len(nodes) == space.dimension else ()


def column_order(
    data: Any, names: Sequence[str], owner: str, *, binding: bool = True
) -> list[int] | None:
    """Where the columns ``names`` stand in a table; None where the table's own order is theirs.

    A table without names is taken as it stands, and so is one whose columns are x1, x2, ... in
    order. Names that are not ``binding``, those of an earlier table, order tables of the same
    names and of no others.
    """
    columns = named_columns(data)
    if not names or not columns or columns == tuple(names):
        return None
    same = len(columns) == len(names) and set(columns) == set(names) and _differ(columns)
    if same:
        return [columns.index(name) for name in names]
    if columns == default_names(len(columns)):
        return None
    if binding:
        raise InputError(_disagreement(column_labels(data), columns, names, owner))
    moved = [name for name in columns if name in names and _moves(name, columns, names)]
    if moved:
        raise InputError(
            f"the column {moved[0]!r} stands at another place than in the table that was fitted "
            f"first, whose columns are {_listed(names)}, and others differ: {_listed(columns)}; "
            "pass tables of the same columns"
        )
    return None


def _differ(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _moves(name: str, columns: Sequence[str], names: Sequence[str]) -> bool:
    return list(columns).index(name) != list(names).index(name)


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > MOST_LISTED else ""
    return ", ".join(map(repr, names[:MOST_LISTED])) + more


def _disagreement(
    labels: Sequence[object], columns: Sequence[str], names: Sequence[str], owner: str
) -> str:
    """Why columns can't be matched with the names of the model, and what to do."""
    if any(isinstance(label, tuple) for label in labels):
        return (
            f"columns of data are matched by name with the nodes of {owner}, and these have names "
            f"of several levels, such as {shown(labels[0])}; give each one name, as by "
            "data.columns = [' '.join(name) for name in data.columns]"
        )
    repeated = [name for name, times in Counter(columns).items() if times > 1]
    if repeated:
        return (
            f"columns of data are matched by name with the nodes of {owner}, and the name "
            f"{repeated[0]!r} stands over {Counter(columns)[repeated[0]]} of them; rename or drop "
            "all but one"
        )
    missing = [name for name in names if name not in columns]
    other = [name for name in columns if name not in names]
    parts = [f"there is no column {_listed(missing)}"] if missing else []
    if other:
        parts.append(f"{_listed(other)} {'is no node' if len(other) == 1 else 'are no nodes'}")
    return (
        f"columns of data are matched by name with the nodes of {owner}, which are "
        f"{_listed(names)}: {' and '.join(parts)}; rename the columns or choose those of the nodes "
        "(--columns in the command), or pass data.to_numpy() to take them in their order"
    )

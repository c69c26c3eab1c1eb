"""What a notebook shows of models and posteriors: ``_repr_html_``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes import diagnostics
from ncbayes.base import shown

if TYPE_CHECKING:
    import xarray as xr

# Rows of a table, names of a block: enough to recognize what it is.
MOST_ROWS, MOST_NAMES = 8, 6
LEVEL = 0.9


def model_html(model: Any) -> str:
    """A model: its space, and its statistics block by block."""
    facts = {"space": shown(model.space)}
    for block, names in model.groups.items():
        facts[f"{block} ({len(names)})"] = _listed(names)
    return _page(shown(model, 100), _facts(facts))


def energy_html(energy: Any) -> str:
    """An energy: its space, and its parameters with their shapes."""
    facts = {"space": shown(energy.space)}
    for leaf in energy.leaves:
        facts[leaf.name] = shown(leaf.parameter, 100)
    return _page(shown(energy, 100), _facts(facts))


def posterior_html(tree: xr.DataTree, title: str) -> str:
    """A posterior: how it was made, and its first quantities."""
    attributes = tree.attrs
    facts = {
        name: str(attributes[name])
        for name in ("verdict", "engine", "noise", "noise_ratio", "seed", "ncbayes_version")
        if attributes.get(name) not in (None, "")
    }
    found = list(islice(diagnostics.quantities(tree), MOST_ROWS + 1))
    tail = 100 * (1 - LEVEL) / 2
    rows = []
    for name, values in found[:MOST_ROWS]:
        low, high = np.percentile(values, [tail, 100 - tail])
        numbers = (values.mean(), values.std(ddof=1) if values.size > 1 else np.nan, low, high)
        rows.append((name, *(f"{value:.3g}" for value in numbers)))
    head = ("", "mean", "sd", f"{LEVEL:.0%} interval, from", "to")
    more = "<p>… and more: <code>.summary()</code></p>" if len(found) > MOST_ROWS else ""
    return _page(title, _facts(facts) + _table(head, rows) + more)


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(names[:MOST_NAMES])
    return some if len(names) <= MOST_NAMES else f"{some}, …"


def _page(title: str, body: str) -> str:
    return f"<div><p><strong>{escape(title)}</strong></p>{body}</div>"


def _facts(facts: Mapping[str, str]) -> str:
    return _table((), facts.items())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"<tr>{''.join(f'<th>{escape(each)}</th>' for each in head)}</tr>"] if head else []
    for name, *cells in rows:
        values = "".join(f"<td>{escape(each)}</td>" for each in cells)
        lines.append(f"<tr><th style='text-align:left'>{escape(name)}</th>{values}</tr>")
    return f"<table>{''.join(lines)}</table>"

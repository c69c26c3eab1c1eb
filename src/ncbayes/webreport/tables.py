"""Parameters as rows: the view of models that are neither a graph nor a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.couplings import graph_in
from ncbayes.posterior import Posterior
from ncbayes.webreport.chains import quantities
from ncbayes.webreport.packing import plain

if TYPE_CHECKING:
    import xarray as xr

# Rows that a page has room for.
MOST_ROWS = 3000


def parameters(posterior: Posterior, labels: list[str], level: float) -> dict[str, Any]:
    """Median and interval of every quantity of these groups, variable by variable."""
    return _parameters(_chosen(posterior, labels), level)


def besides(posterior: Posterior, labels: list[str], level: float) -> dict[str, Any]:
    """The same of what no edge of the graph shows; scales of single coefficients are left out."""
    data = _chosen(posterior, labels)
    columns = graph_in(posterior.data).columns
    others = np.setdiff1d(np.arange(data.sizes["statistic"]), columns)
    data = data.isel(statistic=others)
    most = data.sizes["chain"] * data.sizes["draw"] * len(labels)
    kept = [
        name for name, each in data.items() if each.size and (name == "theta" or each.size <= most)
    ]
    return _parameters(data[kept], level)


def _chosen(posterior: Posterior, labels: list[str]) -> xr.Dataset:
    return posterior.data["posterior"].to_dataset().sel(group=labels)


def _parameters(data: xr.Dataset, level: float) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    total = left = 0
    for name in data.data_vars:
        rows = []
        for label, values in quantities(data[[name]].assign_coords(group=data["group"])):
            total += 1
            if total - left > MOST_ROWS:
                left += 1
                continue
            rows.append(_row(label, values, level))
        if rows:
            blocks.append({"name": str(name), "rows": rows})
    return {"level": level, "blocks": blocks, "total": total, "left": left}


def _row(name: str, values: Any, level: float) -> list[Any]:
    tail = (1 - level) / 2
    low, median, high = np.quantile(values, [tail, 0.5, 1 - tail])
    return [name, plain(values.mean()), plain(median), plain(low), plain(high)]

"""What a fit saw of itself, for the page: data beside simulated rows, log Z, and mass elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from ncbayes import diagnosis
from ncbayes.webreport.packing import plain
from ncbayes.webreport.verdicts import sentence

if TYPE_CHECKING:
    import xarray as xr

# Rows of the tables; of the looks those with the smallest p-values.
MOST_ROWS = 60
# Scores beyond this are all the same: no model that is right has them.
FARTHEST = 12.0


def predictions(tree: xr.DataTree) -> dict[str, Any]:
    """Scores and a histogram of the group that differs most, and a table of all looks."""
    if "verification" not in tree.children or not tree["verification"].sizes.get("look", 0):
        return {"missing": not_verified(tree)}
    stored = tree["verification"].to_dataset()
    (concern,) = (each for each in diagnosis.verification(tree) if each.side == "predictions")
    order = diagnosis.most_different(stored["p_value"].to_numpy())
    worst, groups = stored.isel(look=int(order[0])), stored["look_group"].to_numpy().astype(str)
    group = str(worst["look_group"].item())
    places = np.flatnonzero(groups == group).tolist()
    looks = [_scores(stored, place) for place in places]
    total = stored.sizes["compared"]
    return {
        "grade": concern.grade,
        "line": sentence(concern.line),
        "group": group if len(set(groups)) > 1 else None,
        "looks": looks,
        "count": sum(len(look["z"]) for look in looks),
        "statistics": total,
        "limit": plain(-ndtri(diagnosis.FALSE_ALARM / (2 * total)), 4),
        "farthest": FARTHEST,
        "beyond": sum(abs(z or 0.0) > FARTHEST for look in looks for z in look["z"]),
        "worst": {
            "look": places.index(int(order[0])),
            "label": str(worst["worst_label"].item()),
            "z": plain(worst["worst_z"], 4),
        },
        "picture": _picture(worst),
        "rows": [_look(stored, int(place)) for place in order[:MOST_ROWS]],
        "total": len(order),
    }


def _scores(stored: xr.Dataset, place: int) -> dict[str, Any]:
    """Scores of one look; all are 0 where the model was fitted to these statistics."""
    z = stored["z"].to_numpy()[stored["compared_look"].to_numpy() == place]
    name = str(stored["look_name"].to_numpy()[place])
    return {"name": name, "z": [plain(value, 4) for value in z], "fitted": not z.any()}


def _picture(look: xr.Dataset) -> dict[str, Any]:
    """The histogram of a look, without what pads it to the longest of all."""
    names = {"edges": "edges", "data": "data_share", "simulated": "simulated_share"}
    bars = {key: look[name].to_numpy() for key, name in names.items()}
    kept = {key: [plain(each) for each in own[np.isfinite(own)]] for key, own in bars.items()}
    return {"name": str(look["picture_name"].item()), **kept}


def _look(stored: xr.Dataset, place: int) -> dict[str, Any]:
    own = stored.isel(look=place)
    return {
        "name": str(own["look_name"].item()),
        "group": str(own["look_group"].item()),
        "p": plain(own["p_value"]),
        "label": str(own["worst_label"].item()),
        "z": plain(own["worst_z"], 4),
        "observed": plain(own["observed_worst"], 4),
        "expected": plain(own["expected_worst"], 4),
    }


def not_verified(tree: xr.DataTree) -> str:
    """Why the fit saw nothing of itself."""
    why = str(tree.attrs.get("not_verified", ""))
    reason = f" ({why})" if why else ""
    return f"This fit was not verified{reason}: fit again with verify=True."


def verification(tree: xr.DataTree) -> dict[str, Any]:
    """log Z in two ways, mass where nothing was compared, and what was simulated, by group."""
    labels = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    log_z, seen = _log_z(tree), _seen(tree)
    rows = [
        {"group": label, **log_z.get(label, {}), **seen.get(label, {})}
        for label in labels
        if label in log_z or label in seen
    ]
    return {
        "missing": "" if "verification" in tree.children else not_verified(tree),
        "rows": rows[:MOST_ROWS],
        "total": len(rows),
        "log_z": bool(log_z),
        # Counts in cells are compared of a density: no rows are simulated.
        "cells": "field" in tree.children,
    }


def _log_z(tree: xr.DataTree) -> dict[str, dict[str, Any]]:
    """The contrast's own log Z, that worked out at the draws, and how it was, by group."""
    if "normalizer" not in tree.children or "log_z" not in tree["posterior"]:
        return {}
    stored, draws = tree["normalizer"].to_dataset(), ("chain", "draw")
    own, known = stored["contrast_log_z"], tree["posterior"]["log_z"]
    means = own.mean(draws).to_series()
    worked_out, errors = known.mean(draws).to_series(), stored["error"].to_series()
    gaps, spreads = (own - known).mean(draws).to_series(), own.std(draws).to_series()
    return {
        str(group): {
            "way": str(way),
            "contrast": plain(means[group]),
            "worked_out": plain(worked_out[group]) if way != "contrast" else None,
            "gap": plain(gaps[group], 4) if way != "contrast" else None,
            "sd": plain(np.hypot(spreads[group], errors[group]), 4),
        }
        for group, way in stored["way"].to_series().items()
        if group in gaps.index
    }


def _seen(tree: xr.DataTree) -> dict[str, dict[str, Any]]:
    if "verification" not in tree.children:
        return {}
    stored = tree["verification"].to_dataset()
    names = ("strays", "near", "near_from_rows", "worth", "rows")
    table = stored[list(names)].to_dataframe()
    return {
        str(group): {name: plain(row[name], 4) for name in names} for group, row in table.iterrows()
    }

"""What was fitted and how, its noise, and how to repeat and to cite it."""

from __future__ import annotations

import platform
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes import __version__
from ncbayes.posterior import Posterior
from ncbayes.reports import NoiseReport
from ncbayes.webreport.packing import plain

if TYPE_CHECKING:
    import xarray as xr

# With log odds beyond this a label is certain, and how certain does not matter.
FARTHEST = 20.0
BARS = 40
# Rows of the table of noise, those that keep least first.
MOST_SETS = 60
# "Noise" alone reads as errors in the data to those who have not met it.
NOISE = "Comparison points (noise)"
PAPER = (
    "Sonobe, Sugasawa, Mochihashi, Matsuda. Contrastive Bayesian Inference for Unnormalized Models."
)


def facts(tree: xr.DataTree) -> list[tuple[str, str]]:
    """What was fitted and how, as pairs of a name and words."""
    known, sizes = tree.attrs, tree["posterior"].sizes
    found = [("Model", known.get("model")), ("Data", _data(tree)), ("Groups", _groups(tree))]
    if "noise" in known:
        found.append((NOISE, f"{known['noise']}, noise ratio {float(known['noise_ratio']):g}"))
    elif "noise" not in tree.children:
        found.append((NOISE, f"none ({known.get('likelihood', 'Hyvarinen score')})"))
    tune = f", after {known['tune']} draws of tuning" if "tune" in known else ""
    found += [
        ("Engine", known.get("engine")),
        ("Draws", f"{sizes['chain']} chains x {sizes['draw']} draws{tune}"),
        ("Seed", known.get("seed")),
        ("Date of the run", _date(str(known.get("created_at", "")))),
        ("Time taken", _duration(known.get("wall_seconds"))),
        ("Version", f"ncbayes {known.get('ncbayes_version', __version__)}"),
    ]
    return [(name, str(words)) for name, words in found if words not in (None, "")]


def _data(tree: xr.DataTree) -> str:
    if "observed_data" not in tree.children or "points" not in tree["observed_data"]:
        return ""
    rows, columns = tree["observed_data"]["points"].shape
    words = f"{rows} rows, {columns} column{'' if columns == 1 else 's'}"
    dropped = int(tree["field"]["dropped"]) if "field" in tree.children else 0
    return f"{words}; {dropped} points outside the domain were left out" if dropped else words


def _groups(tree: xr.DataTree) -> str:
    labels = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    if len(labels) == 1:
        return ""
    some = labels if len(labels) <= 6 else [*labels[:2], "...", labels[-1]]
    return f"{len(labels)}: {', '.join(some)}"


def _date(stamp: str) -> str:
    """The date and time of an ISO stamp in words; anything else as it is."""
    try:
        return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return stamp


def _duration(seconds: Any) -> str:
    if seconds is None:
        return ""
    minutes = float(seconds) / 60
    if minutes < 2:
        return f"{float(seconds):.0f} seconds"
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"


def noise(tree: xr.DataTree, report: NoiseReport) -> dict[str, Any] | None:
    """Histograms of the log odds of data and noise, and the table of the report."""
    if "noise" not in tree.children:
        return None
    stored = tree["noise"].to_dataset()
    data, near = (stored[name].to_numpy().ravel() for name in ("log_odds_at_data", "log_odds"))
    near = near[np.isfinite(near)]
    both = np.clip(np.concatenate([data, near]), -FARTHEST, FARTHEST)
    alike = -np.log(float(tree.attrs["noise_ratio"]))
    # However alike the two are, a unit on each side: differences far below one are nothing.
    edges = np.histogram_bin_edges(np.append(both, [alike - 1, alike + 1]), BARS)
    shares = [
        np.histogram(np.clip(each, -FARTHEST, FARTHEST), edges)[0] / max(len(each), 1)
        for each in (data, near)
    ]
    table = report.table.sort_values("information_kept").head(MOST_SETS)
    names = ["noise_points", "ideal_noise", "auc", "information_kept", "widening"]
    rows = [
        {"set": str(index[0]), "group": str(index[1]), **{n: plain(row[n]) for n in names}}
        for index, row in table.iterrows()
    ]
    return {
        "edges": [plain(edge) for edge in edges],
        "data": [plain(share, 4) for share in shares[0]],
        "noise": [plain(share, 4) for share in shares[1]],
        "alike": plain(alike),
        "farthest": FARTHEST,
        # Every noise set is compared with the same rows.
        "counts": [stored.sizes["row"], len(near)],
        "sets": stored.sizes["noise_set"],
        "rows": rows,
        "total": len(report.table),
        "rounds": _rounds(report),
    }


def _rounds(report: NoiseReport) -> list[dict[str, Any]]:
    """Looks at the short fits by which noise was made of the model, the first MOST_SETS."""
    if report.rounds is None:
        return []
    names = ["near", "elsewhere", "moments", "log_z", "limit", "moved"]
    return [
        {
            "round": int(index[0]),
            "group": str(index[1]),
            "passed": bool(row["passed"]),
            **{name: plain(row[name]) for name in names},
        }
        for index, row in report.rounds.head(MOST_SETS).iterrows()
    ]


def repeating(posterior: Posterior, repeat: str | None) -> dict[str, Any]:
    """The command, the code that opens the result, and the versions that made it."""
    known = posterior.data.attrs
    version = str(known.get("ncbayes_version", __version__))
    return {
        "command": repeat,
        "version": version,
        "code": 'import ncbayes as ncb\n\nposterior = ncb.load("posterior.nc")\n'
        "print(posterior.summary(level=0.9))",
        "seed": str(known.get("seed", "")),
        "written": f"This page was written by ncbayes {__version__}, Python "
        f"{platform.python_version()}.",
        "cite": [PAPER, f"ncbayes, version {version}."],
    }

"""The page: its parts put together, and written in one go."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from ncbayes.base import InputError, shown
from ncbayes.couplings import check_level, group_label
from ncbayes.posterior import Posterior
from ncbayes.webreport import chains, heads, maps, networks, predictions, tables, verdicts

# In the order in which they are read.
SCRIPTS = (
    "parts.js",
    "charts.js",
    "network.js",
    "density.js",
    "tables.js",
    "predictions.js",
    "report.js",
)
# Characters that could end the island or start a comment in it.
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def write(
    posterior: Posterior | Mapping[str, Posterior],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    repeat: str | Mapping[str, str] | None = None,
    group: str | None = None,
    level: float = 0.9,
) -> Path:
    """Write the report of a fit as one HTML file, which needs no other and no network.

    A verdict with what it rests on, what was fitted, and by the kind of model a network with a
    threshold to move, maps or curves with a time to move, or a table of parameters. Several fits
    by name, ``{"angles": posterior, ...}``, share one page, which shows one of them at a time.
    ``repeat`` is the command that repeats the run, shown as it is; of several fits, commands by
    the same names. ``group``: the network, map or table is of this group only. ``level`` is that
    of all intervals, which are equal-tailed.
    """
    fits = _checked_fits(posterior)
    check_level(level)
    if title is not None and not isinstance(title, str):
        raise InputError(f"title must be text, got {shown(title)}")
    commands = _checked_commands(repeat, fits)
    file = _checked_file(path)
    found = [
        contents(each, name or title, commands.get(name), group, float(level))
        for name, each in fits.items()
    ]
    if isinstance(posterior, Mapping):
        text = page({"title": title or "Report of " + ", ".join(fits), "fits": found})
    else:
        text = page(found[0])
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise InputError(f"can't write to {str(file)!r}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return file


def _checked_fits(posterior: object) -> dict[str, Posterior]:
    """The fits by name; that of a single one is empty."""
    fits: dict[str, Any] = dict(posterior) if isinstance(posterior, Mapping) else {"": posterior}
    for name, each in fits.items():
        if not isinstance(each, Posterior):
            raise InputError(
                "webreport.write needs the posterior that ncbayes.fit or ncbayes.load returns, or "
                f"several of them by name, got {shown(each)}"
            )
        if isinstance(posterior, Mapping) and (not isinstance(name, str) or not name.strip()):
            raise InputError(f"names of fits must be texts that are not empty, got {shown(name)}")
    if not fits:
        raise InputError("webreport.write needs at least one posterior, got an empty mapping")
    return fits


def _checked_commands(repeat: object, fits: dict[str, Posterior]) -> dict[str, str]:
    """The commands that repeat the fits, by the names of the fits."""
    if repeat is None:
        return {}
    commands: dict[str, Any] = dict(repeat) if isinstance(repeat, Mapping) else {"": repeat}
    for name, words in commands.items():
        if not isinstance(words, str):
            raise InputError(f"repeat must be text, got {shown(words)}")
        if name not in fits:
            names = ", ".join(map(repr, fits)) if "" not in fits else "one fit, which has no name"
            raise InputError(
                f"repeat must hold commands by the names of the fits ({names}), got {shown(repeat)}"
            )
    return commands


def contents(
    posterior: Posterior, title: str | None, repeat: str | None, group: str | None, level: float
) -> dict[str, Any]:
    """All that the page shows, as its script reads it."""
    tree = posterior.data
    labels = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    if group is not None:
        labels = [group_label(tree, group)]
    quantities, total = chains.measured(tree)
    draws = int(tree["posterior"].sizes["draw"])
    report, model = posterior.noise_report(), str(tree.attrs.get("model", "a model"))
    verdict = verdicts.verdict(tree, quantities, total)
    again = verdicts.more_draws(verdict, draws)
    return {
        "title": title or f"Report of a fit of {model.removesuffix('()')}",
        "verdict": verdicts.headline(verdict),
        "boxes": verdicts.boxes(verdict, report, again),
        "failed": verdicts.failure(verdict),
        "facts": heads.facts(tree),
        "view": _view(posterior, labels, level),
        "predictions": predictions.predictions(tree),
        "verification": predictions.verification(tree),
        "diagnostics": chains.pictured(tree, quantities, total),
        "noise": heads.noise(tree, report),
        "repeat": heads.repeating(posterior, repeat),
    }


def _view(posterior: Posterior, labels: list[str], level: float) -> dict[str, Any]:
    """The main part: a network, maps, curves or a table, by what the posterior holds."""
    kinds = posterior.data.children
    if "graph" in kinds and len(posterior.data["graph"]["ends"]):
        return {
            "network": networks.network(posterior, labels, level),
            "besides": tables.besides(posterior, labels, level),
        }
    if "field" in kinds and posterior.data["field"].sizes["axis"] <= 2:
        name = "map" if posterior.data["field"].sizes["axis"] == 2 else "curve"
        return {name: maps.density(posterior, labels, level)}
    return {"parameters": tables.parameters(posterior, labels, level)}


def page(found: dict[str, Any]) -> str:
    """The HTML of these contents, with style and scripts in it.

    The page allows no script but its own, by its hash, and nothing from elsewhere.
    """
    script = "\n".join(_asset(name) for name in SCRIPTS)
    script = f'(function () {{\n"use strict";\n{script}}})();\n'
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    title = html.escape(found["title"]).encode("ascii", "xmlcharrefreplace").decode("ascii")
    text = json.dumps(found, allow_nan=False, separators=(",", ":"))
    for sign, instead in UNSAFE.items():
        text = text.replace(sign, instead)
    # One pass: a name of the user's that looks like a mark is left as it is.
    marks = {"TITLE": title, "HASH": digest, "STYLE": _asset("report.css"), "DATA": text}
    pieces = _asset("report.html").split("@@")
    return "".join({**marks, "SCRIPT": script}[each] if k % 2 else each
                   for k, each in enumerate(pieces))  # fmt: skip


def _asset(name: str) -> str:
    return (files("ncbayes.webreport") / name).read_text(encoding="utf-8")


def _checked_file(path: object) -> Path:
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputError(f"path must be the name of a file, got {shown(path)}")
    if "\0" in os.fspath(path):
        raise InputError(f"path must be a name without zero bytes, got {shown(path)}")
    file = Path(path)
    if file.suffix.lower() != ".html":
        raise InputError(f"path must end in .html, got {shown(str(file))}")
    if not file.parent.is_dir() or file.is_dir():
        raise InputError(f"can't write to {str(file)!r}: it must be a file in a folder that exists")
    return file

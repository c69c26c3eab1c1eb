"""The paper's tables and figures, each by one command: ``ncbayes reproduce NAME``.

One study a file; they use ``ncbayes`` as any user would, and nothing imports them but the command.
``items`` are all of them by name; a file is imported when one of its items is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

# Where each table and figure of the paper is made.
FILES = {
    "table1": "density_table",
    "table2": "torus_tables",
    "table3": "torus_tables",
    "tableS1": "torus_tables",
    "tableS2": "torus_tables",
    "tableS3": "torus_tables",
    "tableS4": "torus_tables",
    "figure1": "density_figures",
    "figure2": "crime_figure",
    "figure3": "chain_figure",
    "figure4": "recording_figures",
    "figure5": "recording_figures",
    "figure6": "recording_figures",
    "figure7": "recording_figures",
    "figureS1": "density_figures",
}


def item(name: str) -> Any:
    """The ``Table`` or ``Figure`` of this name."""
    return importlib.import_module(f"ncbayes_paper.{FILES[name]}").ITEMS[name]

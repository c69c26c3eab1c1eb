"""What a run's folder holds of a posterior: the netCDF file, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncbayes.base import InputError
from ncbayes.cli.folders import POSTERIOR
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# More groups than this get no network picture of their own; ncbayes plot draws any of them.
MOST_GROUPS = 6
DPI = 150


def write(posterior: Posterior, folder: Path) -> list[str]:
    """Write all files of a posterior; their names."""
    posterior.save(folder / POSTERIOR)
    files = [POSTERIOR, "summary.csv"]
    posterior.summary().to_csv(folder / "summary.csv", index_label="quantity")
    if is_graph(posterior):
        edge_table(posterior).to_csv(folder / "edges.csv", index=False)
        files.append("edges.csv")
    for name, draw in pictures(posterior):
        try:
            save_picture(draw(), folder / f"{name}.png")
        except InputError:
            continue  # a picture that this posterior does not have
        files.append(f"{name}.png")
    return files


def is_graph(posterior: Posterior) -> bool:
    """Whether the posterior is that of a graph with edges."""
    return "graph" in posterior.data.children


def groups_of(posterior: Posterior) -> list[str]:
    """The labels of the groups."""
    return [str(label) for label in posterior.data["posterior"]["group"].to_numpy()]


def meaning(rule: str, threshold: float, level: float) -> str:
    """What "selected" means, in words."""
    if rule == "interval":
        return f"the {100 * level:g} % interval of some coefficient excludes 0"
    return f"the median of some coefficient exceeds {threshold:g} in size"


def edge_table(posterior: Posterior, group: str | None = None, **rule: Any) -> pd.DataFrame:
    """The edges of a group, or of all with a column that says which."""
    import pandas as pd

    from ncbayes import graphs

    labels = groups_of(posterior)
    if group is not None or len(labels) == 1:
        return graphs.edges(posterior, group=group, **rule)
    parts = [graphs.edges(posterior, group=label, **rule) for label in labels]
    for label, part in zip(labels, parts, strict=True):
        part.insert(0, "group", label)
    table = pd.concat(parts, ignore_index=True)
    chosen = table["selected"].to_numpy()
    false = 1 - table["probability"].to_numpy()[chosen]
    table.attrs = {**parts[0].attrs, "expected_fdr": float(false.mean()) if len(false) else 0.0}
    return table


def pictures(posterior: Posterior) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The pictures of a run by name, drawn when called."""
    quiet()
    from ncbayes import plots

    labels = groups_of(posterior)
    if is_graph(posterior):
        parts = [f"-{name}" for name in file_names(labels[:MOST_GROUPS])]
        for label, part in zip(labels, parts if len(labels) > 1 else [""], strict=False):
            yield f"network{part}", partial(plots.network, posterior, group=label)
            yield f"adjacency{part}", partial(plots.adjacency, posterior, group=label)
    if "field" in posterior.data.children:
        if posterior.data["field"].sizes["axis"] == 1:
            yield "bands", partial(plots.density_bands, posterior)
        else:
            yield "maps", partial(plots.density_maps, posterior)
            if len(labels) > 1:
                yield "change", partial(plots.change_map, posterior, labels[0], labels[-1])
    if "verification" in posterior.data.children:
        yield "predictions", partial(plots.predictions, posterior)
    yield "trace", partial(plots.trace, posterior)
    if "noise" in posterior.data.children:
        yield "noise", partial(plots.noise, posterior)


def quiet() -> None:
    """Pictures are drawn to files, never in windows."""
    import matplotlib

    matplotlib.use("agg")


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure, and let go of it."""
    import matplotlib.pyplot as plt

    try:
        figure.savefig(path, dpi=DPI)
    finally:
        plt.close(figure)


def file_names(labels: Sequence[str]) -> list[str]:
    """Labels as parts of file names that differ, also where case does not count.

    >>> file_names(["a/b", "a_b", "A_B"])
    ['a_b', 'a_b-2', 'A_B-3']
    """
    found: list[str] = []
    for label in labels:
        plain = "".join(each if each.isalnum() or each in "._-" else "_" for each in label)
        taken, name, number = {each.casefold() for each in found}, plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        found.append(name)
    return found

"""Makes the picture of docs/architecture.md: python docs/make_architecture_picture.py [folder]."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

INK, ABOVE, WAIST, BELOW, AFTER = "#222222", "#dbe9f6", "#fde0b8", "#dff0dd", "#eeeeee"
# Left, bottom, width, height, color, title, what is there.
BOXES = (
    (0.2, 5.2, 2.3, 1.0, ABOVE, "models", "space, statistics,\nlog_base"),
    (2.8, 5.2, 2.3, 1.0, ABOVE, "data", "spaces: checked,\nrows by group"),
    (8.0, 5.2, 2.3, 1.0, ABOVE, "noise", "sample, log_density;\nwhen it changes"),
    (5.4, 5.2, 2.3, 1.0, ABOVE, "priors", "Gaussian given\ntheir scales"),
    (2.8, 3.5, 4.9, 1.0, WAIST, "the waist: Target",
     "Contrast(design, offset, is_data)\nor a loss, by group"),
    (2.8, 1.8, 2.3, 1.0, BELOW, "engines", "a Kernel for a target:\nstart, sweeps"),
    (5.4, 1.8, 2.3, 1.0, BELOW, "chains", "warm-up, storage,\ncheckpoints"),
    (2.8, 0.1, 4.9, 1.0, AFTER, "Posterior",
     "a tree in ArviZ's schema, and what the fit saw of itself"),
    (8.0, 0.1, 2.3, 1.0, AFTER, "read-outs", "graphs, densities,\nplots, report, cli"),
    (8.0, 3.5, 2.3, 1.0, WAIST, "rounds, choice", "automatic noise:\nfit, look, make anew"),
)  # fmt: skip
ARROWS = (
    ((1.35, 5.2), (3.4, 4.5)), ((3.95, 5.2), (4.4, 4.5)), ((6.55, 5.2), (6.1, 4.5)),
    ((8.6, 5.2), (7.3, 4.5)), ((3.95, 3.5), (3.95, 2.8)), ((5.1, 2.3), (5.4, 2.3)),
    ((6.55, 1.8), (6.0, 1.1)), ((7.7, 0.6), (8.0, 0.6)), ((7.7, 3.85), (8.0, 3.85)),
    ((9.6, 4.5), (9.6, 5.2)),
)  # fmt: skip


def picture() -> plt.Figure:
    """Boxes for rooms, arrows for what one hands to the next."""
    figure, axes = plt.subplots(figsize=(8.4, 5.2))
    for left, low, width, height, color, title, words in BOXES:
        shape = FancyBboxPatch(
            (left, low), width, height, boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=color, edgecolor=INK, linewidth=0.8,
        )  # fmt: skip
        axes.add_patch(shape)
        middle = left + width / 2
        axes.text(middle, low + height - 0.24, title, ha="center", va="center", weight="bold")
        axes.text(middle, low + 0.36, words, ha="center", va="center", size=8.5)
    for start, end in ARROWS:
        style = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.0}
        axes.annotate("", xy=end, xytext=start, arrowprops=style)
    axes.text(0.2, 4.0, "above nobody sees\nan engine,\nbelow nobody sees\na model", va="center")
    axes.set(xlim=(0, 10.5), ylim=(-0.1, 6.4))
    axes.axis("off")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    mpl.use("Agg")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    picture().savefig(folder / "architecture.png", dpi=110)

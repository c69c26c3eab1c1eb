"""What all pictures share: colours, legends, names, ticks and checks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from ncbayes.base import InputError, shown
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's palette: told apart by the colour-blind, and in print.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6B6B6B"
COLOURS = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", "#000000")
# Letters of a name that a panel has room for.
MOST_LETTERS = 20


def check_posterior(name: str, posterior: object) -> None:
    """Refuse what is no posterior; ``name`` is the function that asks."""
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"{name} needs the posterior that ncbayes.fit or ncbayes.load returns, got "
            f"{shown(posterior)}"
        )


def check_most(most: object) -> None:
    """Refuse what is no number of things to show."""
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"most must be a whole number, 1 or more, got {shown(most)}")


def failed_line(posterior: Posterior) -> str:
    """Lines that say that and why the fit has failed, in front of a title; "" if it has not."""
    if posterior.data.attrs.get("grade") != "failed":
        return ""
    return textwrap.fill(f"FAILED FIT: {posterior.verdict().reason}", 50) + "\n"


def legend_above(axis: Axes, columns: int = 1) -> None:
    """The legend over the upper left corner of the panel."""
    axis.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1),
                borderaxespad=0, ncols=columns)  # fmt: skip


def angle_ticks(axis: Axis, halves: bool = True) -> None:
    """Ticks at -pi, 0 and pi, and with ``halves`` between them."""
    labels = {-1.0: r"$-\pi$", -0.5: r"$-\pi/2$", 0.0: "0", 0.5: r"$\pi/2$", 1.0: r"$\pi$"}
    kept = [each for each in labels if halves or each.is_integer()]
    axis.set_ticks([np.pi * each for each in kept], [labels[each] for each in kept])


def short(label: object) -> str:
    """A name, with its middle left out if long: names often differ at the end.

    >>> short("prefrontal channel 12")
    'prefrontal ...nel 12'
    """
    text = str(label)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 9]}...{text[-6:]}"


def cycle(count: int) -> list[str]:
    """So many colours, over and over."""
    return [COLOURS[k % len(COLOURS)] for k in range(count)]

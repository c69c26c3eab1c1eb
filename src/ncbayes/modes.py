"""Chains that disagree: have they not mixed yet, or do they sit in copies of one mode?

Labels of a mixture, the order and signs of independent components and of hidden units: where a
model does not change with them its posterior has many modes of one height and shape. More draws do
not bring chains together then, and do not have to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

# R-hat up to which chains agree on what symmetric modes share, and from which on they disagree
# about a parameter by more than slow mixing explains.
AGREE, APART = 1.05, 1.2

RHat = Callable[[NDArray[np.float64]], float]


def modes(
    parameters: Mapping[str, NDArray[np.float64]],
    log_likelihood: NDArray[np.float64],
    r_hat: RHat,
) -> Literal["copies", "equals"] | None:
    """How chains that differ in their parameters sit in modes of one height; None if they do not.

    ``parameters`` are (chain, draw, group, ...), ``log_likelihood`` (chain, draw), and ``r_hat`` is
    a function of (chain, draw). "copies": parameters agree up to their order and signs. "equals":
    they do not, but every chain by itself has settled.
    """
    chains, draws = log_likelihood.shape
    if chains < 2 or draws < 8 or not parameters:
        return None
    whole = np.concatenate(
        [values.reshape(*values.shape[:3], -1) for values in parameters.values()], axis=-1
    )
    flat = whole.reshape(chains, draws, -1)
    if not max(map(r_hat, np.moveaxis(flat, -1, 0))) > APART or r_hat(log_likelihood) > AGREE:
        return None
    ordered = np.sort(np.abs(whole), axis=-1).reshape(chains, draws, -1)
    if all(r_hat(each) <= AGREE for each in np.moveaxis(ordered, -1, 0) if np.ptp(each) > 0):
        return "copies"
    half = draws // 2
    for chain in flat:
        halves = np.stack([chain[:half], chain[half : 2 * half]])
        if not all(r_hat(each) <= APART for each in np.moveaxis(halves, -1, 0) if np.ptp(each) > 0):
            return None
    return "equals"


def mode_line(kind: Literal["copies", "equals"], worst: float, name: str) -> str:
    """What to say and do about them; ``worst`` is the largest R-hat, that of ``name``."""
    variable = name.split("[")[0]
    seen = (
        "copies of one mode: log likelihoods agree, and parameters up to order and sign"
        if kind == "copies"
        else "different modes of one height: log likelihoods agree, and each chain has settled"
    )
    return (
        f"the chains sit in {seen} (worst R-hat {worst:.3g}, {name}); more draws do not help: "
        f"begin in one by initial=posterior.data['posterior'][{variable!r}][0].mean('draw')[0], "
        "give the parameters an order, or read what the modes share"
    )

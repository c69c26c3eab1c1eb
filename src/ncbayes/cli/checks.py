"""Is a run fine? Convergence, noise, and whether data from the fitted model look like the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import diagnostics, predictive
from ncbayes.base import FloatArray, InputError
from ncbayes.cli import readouts
from ncbayes.cli.terminal import spoken
from ncbayes.densities import density_draws
from ncbayes.fields import stored_field
from ncbayes.posterior import Posterior
from ncbayes.readout import points_of
from ncbayes.sites import user_coordinates
from ncbayes.spaces import is_periodic

# The chance that a fit without fault is sent back by the predictive check, over all its numbers.
FALSE_ALARM = 0.05
LEAST_REPLICATIONS = 100
# Gibbs sweeps from one replicated data set to the next, a tenth of those that a new one takes.
SWEEPS = 20
# The start of what the library says of noise that no point can be mistaken for, and of poor noise.
APART, POOR = "noise and data are told apart", "The noise is poor"
# Cells along a map over which densities are summed: as few as give each center of the basis several
# of its own. With fewer, a center may own points but no cell, and seem to expect none.
CELLS, FEWEST_OWN = (40, 80, 160), 4
# Draws whose densities are summed, and how many of their values are held at most (0.3 GB).
DRAWS, MOST_VALUES = 100, 40_000_000


@dataclass(frozen=True)
class Verdict:
    """Whether one side of a run is fine (None: not known), and the lines that say so."""

    fine: bool | None
    lines: tuple[str, ...]


def verdicts(posterior: Posterior, model: Any, why_not: str, seed: int = 0) -> dict[str, Verdict]:
    """What there is to say of a posterior; ``why_not``: why there is no model, if there is none."""
    draws = int(posterior.data["posterior"].sizes["draw"])
    lines = [spoken(line, draws) for line in posterior.warning_lines()]
    apart = [line for line in lines if line.startswith(APART)]
    return {
        "convergence": _convergence(posterior, [line for line in lines if line not in apart]),
        "noise": _noise(posterior, apart),
        "predictive": _predictive(posterior, model, why_not, seed),
    }


def _convergence(posterior: Posterior, lines: list[str]) -> Verdict:
    if lines:
        return Verdict(False, tuple(lines))
    table = posterior.summary()
    if not np.isfinite(table["r_hat"]).any():
        return Verdict(False, ("one chain: R-hat is not known; fit with --chains 4",))
    fewest = table[["ess_bulk", "ess_tail"]].min().min()
    return Verdict(
        True,
        (
            f"The chains have converged: R-hat is at most {table['r_hat'].max():.3f} (limit "
            f"{diagnostics.WORST_R_HAT}), and there are at least {fewest:.0f} effective draws.",
        ),
    )


def _noise(posterior: Posterior, apart: list[str]) -> Verdict:
    found = [spoken(line) for line in posterior.noise_report().lines]
    poor = any(line.startswith(POOR) for line in found)
    return Verdict(not poor and not apart, (*apart, *found))


def _predictive(posterior: Posterior, model: Any, why_not: str, seed: int) -> Verdict:
    rng = np.random.default_rng(seed)
    try:
        if "field" in posterior.data.children:
            found = _over_space(posterior, rng)
        elif model is None:
            return Verdict(None, (f"Not looked at: {why_not}.",))
        else:
            found = dict(_replicated(posterior, model, rng))
    except InputError as impossible:
        return Verdict(None, (f"Not looked at: {impossible}.",))
    worst = min(found, key=found.__getitem__)
    limit = FALSE_ALARM / len(found)
    if found[worst] < limit:
        return Verdict(
            False,
            (
                f"Data from the fitted model do not look like the data in {worst}: p = "
                f"{found[worst]:.2g}, below {limit:.2g} (of {len(found)} comparisons); the model "
                "leaves something out: look at ncbayes report, or try another model.",
            ),
        )
    return Verdict(
        True,
        (
            f"Data from the fitted model look like the data: of {len(found)} comparisons the "
            f"smallest p is {found[worst]:.2g} ({worst}), not below {limit:.2g}.",
        ),
    )


def _replicated(
    posterior: Posterior, model: Any, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """A p-value for each group and statistic."""
    points = points_of(posterior)
    labels = [label for label in readouts.groups_of(posterior) if len(points.get(label, ()))]
    angles = is_periodic(model.space)
    each = len(predictive.STATISTICS) if angles else len(model.groups)
    draws = _replications(len(labels) * each)
    sweeps = SWEEPS if hasattr(model, "sweep") else None
    for label in labels:
        options: Any = {"draws": draws, "seed": rng, "group": label, "sweeps": sweeps}
        if angles:
            check = predictive.check_angles(posterior, model, points[label], **options)
        else:
            check = predictive.check(posterior, model, **options)
        for statistic, p_value in check.summary()["p_value"].items():
            of_group = f" of group {label}" if len(labels) > 1 else ""
            yield f"{statistic}{of_group}", float(p_value)


def _replications(comparisons: int) -> int:
    """How many data sets: the smallest p-value that there can be is one by their number."""
    return max(LEAST_REPLICATIONS, math.ceil(1.5 * comparisons / FALSE_ALARM))


def _over_space(posterior: Posterior, rng: np.random.Generator) -> dict[str, float]:
    """A p-value for each time: are points where the density is?

    Points are counted around each center of the basis. The statistic is that of Freeman and Tukey,
    ``sum over centers of (sqrt(count) - sqrt(expected))^2``, for the data and for data drawn from
    the same draw of the posterior.
    """
    from scipy.spatial import cKDTree

    field = stored_field(posterior.data, "check")
    centers = user_coordinates(field, field.model.table)
    size, cells, owned = _grid(posterior, field, centers)
    scale = np.ptp(cells, axis=0)
    # Centers that own too few cells even so are merged into their neighbours.
    centers = centers[owned >= min(FEWEST_OWN, owned.max())]
    tree = cKDTree(centers / scale)
    draws = density_draws(posterior, size=size, draws=DRAWS)
    where = tree.query(cells / scale)[1]
    mass = np.nan_to_num(draws.to_numpy().reshape(*draws.shape[:2], -1))
    shares = np.stack([mass[..., where == k].sum(axis=-1) for k in range(len(centers))], axis=-1)
    shares /= shares.sum(axis=-1, keepdims=True)
    replications = _replications(shares.shape[1])
    found, observed = {}, points_of(posterior)
    for time, label in enumerate(readouts.groups_of(posterior)):
        points = observed.get(label)
        if points is None or not len(points):
            continue
        near = tree.query(user_coordinates(field, points) / scale)[1]
        counts = np.bincount(near, minlength=len(centers))
        found[str(label)] = _freeman_tukey(counts, shares[:, time], replications, rng)
    return found


def _grid(
    posterior: Posterior, field: Any, centers: FloatArray
) -> tuple[int, FloatArray, NDArray[np.intp]]:
    """How fine a map is, the middles of its cells, and how many of them each center owns."""
    from scipy.spatial import cKDTree

    for size in CELLS:
        draws = density_draws(posterior, size=size, draws=2)
        axes = list(field.axes or draws.dims[:1:-1])
        mesh = np.meshgrid(*(draws[name] for name in axes[::-1]), indexing="ij")
        cells = np.stack(mesh, axis=-1).reshape(-1, len(axes))[:, ::-1]
        scale = np.ptp(cells, axis=0)
        inside = cells[np.isfinite(draws.to_numpy()[0, 0].reshape(-1))]
        near = cKDTree(centers / scale).query(inside / scale)[1]
        owned = np.bincount(near, minlength=len(centers))
        finer = DRAWS // 2 * draws.size * 2 ** len(axes)
        if owned.min() >= FEWEST_OWN or finer > MOST_VALUES:
            break
    return size, cells, owned


def _freeman_tukey(counts: Any, shares: FloatArray, size: int, rng: np.random.Generator) -> float:
    """The posterior predictive p-value of counts by ``size`` data sets, given shares by draw."""
    total = int(counts.sum())
    shares = shares[np.arange(size) * len(shares) // size]
    expected = total * shares
    replicated = rng.multinomial(total, shares)
    ours = ((np.sqrt(counts) - np.sqrt(expected)) ** 2).sum(axis=1)
    theirs = ((np.sqrt(replicated) - np.sqrt(expected)) ** 2).sum(axis=1)
    return float((1 + (theirs >= ours).sum()) / (1 + len(ours)))

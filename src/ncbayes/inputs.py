"""The boundary: what the user passes, checked once and said in the user's words."""

from __future__ import annotations

import math
import numbers
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from ncbayes.base import (
    FloatArray,
    InputError,
    Model,
    Noise,
    Prior,
    Schedule,
    Space,
    in_group,
    shown,
)
from ncbayes.contrast import Contrast, model_name, statistic_names
from ncbayes.noise.distributions import matched
from ncbayes.noise.schedules import Fixed
from ncbayes.priors import Normal
from ncbayes.progress import Progress
from ncbayes.spaces import as_points

Seed = int | np.random.Generator | None
GIGABYTE = 1e9
# A statistic whose part not explained by the others has less variance than this share of its own
# cannot be told from a linear combination of them in double precision.
COLLINEAR = 1e-10
# The check forms the statistics and their Gram matrix; beyond these numbers of statistics, and of
# statistics times points (0.8 GB), that is too long to wait.
MOST_CHECKED = 3000
MOST_CHECKED_ENTRIES = 1e8


def checked_count(name: str, value: object, least: int) -> int:
    """A whole number, ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {shown(value)}")
    return int(value)


def checked_model(model: Any) -> Model:
    """The model, if it has the four members of one."""
    if isinstance(model, type):
        raise InputError(
            f"model must be an instance, got {shown(model)}; make one, as in {model.__name__}(...)"
        )
    missing = [
        name for name in ("space", "groups", "statistics", "log_base") if not hasattr(model, name)
    ]
    if missing:
        raise InputError(
            "model must have space, groups, statistics(x) and log_base(x), got "
            f"{shown(model)}, which lacks {', '.join(missing)}; call fit(model, data)"
        )
    if not isinstance(model.space, Space):
        raise InputError(
            f"the space of {model_name(model)} must be one such as ncbayes.spaces.Reals(2), got "
            f"{shown(model.space)}"
        )
    if not _names_statistics(model.groups):
        raise InputError(
            f"groups of {model_name(model)} must map names of blocks to lists of names of "
            f"statistics, such as {{'linear': ['x1', 'x2']}}, got {shown(model.groups)}"
        )
    names = statistic_names(model)
    if not names:
        raise InputError(f"{model_name(model)} has no statistics; groups must name at least one")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InputError(
            f"{model_name(model)} names the statistic {shown(name)} {times} times; names must "
            "differ"
        )
    checked: Model = model
    return checked


def _names_statistics(groups: Any) -> bool:
    # A bare string would pass for a list of one-letter names.
    return isinstance(groups, Mapping) and all(
        isinstance(names, Iterable)
        and not isinstance(names, str)
        and all(isinstance(name, str) for name in names)
        for names in groups.values()
    )


def checked_data(model: Model, data: Any) -> dict[str, FloatArray]:
    """Points by group: one group "all", or the labels of a mapping, in its order."""
    owner = model_name(model)
    if not isinstance(data, Mapping):
        return {"all": as_points(data, model.space, owner)}
    if not data:
        raise InputError("data is an empty mapping; it must hold at least one group of points")
    groups = {}
    for label, points in data.items():
        with in_group(label):
            groups[str(label)] = as_points(points, model.space, owner)
    if len(groups) < len(data):
        raise InputError(
            "two groups of data have the same label when written as text; labels must differ"
        )
    return groups


def checked_sizes(noise_ratio: Any, data: Mapping[str, FloatArray]) -> tuple[int, ...]:
    """Noise points a group, ``noise_ratio`` times its rows."""
    number = isinstance(noise_ratio, numbers.Real) and not isinstance(noise_ratio, bool)
    if not number or not math.isfinite(noise_ratio) or noise_ratio <= 0:
        raise InputError(
            f"noise_ratio must be a positive number (noise points for each data point), "
            f"got {shown(noise_ratio)}"
        )
    sizes = tuple(round(noise_ratio * len(points)) for points in data.values())
    if min(sizes) == 0:
        rows = min(len(points) for points in data.values())
        raise InputError(
            f"noise_ratio={noise_ratio} gives no noise points for {rows} rows of data; it must be "
            f"at least {1 / rows:.2g}"
        )
    return sizes


def checked_schedule(noise: Any) -> Schedule:
    """The noise schedule: as passed, or ``Fixed`` around a distribution, a mapping or None."""
    if isinstance(noise, Schedule) and not isinstance(noise, type):
        return noise
    return Fixed(noise)


def checked_noises(noise: Any, model: Model, data: Mapping[str, FloatArray]) -> tuple[Noise, ...]:
    """One distribution a group; where none is given, one matched to the group's data."""
    if noise is None:
        if len(data) == 1:
            return tuple(matched(model.space, points) for points in data.values())
        made = []
        for label, points in data.items():
            with in_group(label):
                made.append(matched(model.space, points))
        return tuple(made)
    chosen = noise if isinstance(noise, Mapping) else dict.fromkeys(data, noise)
    if set(map(str, chosen)) != set(data):
        raise InputError(
            f"noise must name the groups of the data, {shown(list(data))}, got "
            f"{shown(list(map(str, chosen)))}"
        )
    by_label = {str(label): each for label, each in chosen.items()}
    for each in by_label.values():
        if isinstance(each, type) or not isinstance(each, Noise):
            raise InputError(
                "noise must have sample(size, rng) and log_density(x), such as "
                f"ncbayes.noise.Uniform(space), or be a schedule such as ncbayes.noise.Pooled(), "
                f"got {shown(each)}"
            )
    return tuple(by_label[label] for label in data)


def checked_entropy(seed: Seed, stored: int | None) -> int:
    """The number all random numbers come from; ``stored`` is that of a run to resume."""
    if seed is None:
        entropy = np.random.SeedSequence().entropy if stored is None else stored
        return int(entropy)  # type: ignore[arg-type]
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(
            "seed must be a whole number, 0 or more, or a generator such as "
            f"np.random.default_rng(1), got {shown(seed)}"
        )
    return int(seed)


def checked_folder(checkpoint: Any) -> Path | None:
    """The checkpoint folder's path."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | os.PathLike):
        raise InputError(f"checkpoint must be the path of a folder, got {shown(checkpoint)}")
    return Path(checkpoint)


def checked_progress(progress: Any) -> Progress:
    """None, True, False or a function."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(
            "progress must be None, False or a function that takes a ProgressEvent, got "
            f"{shown(progress)}"
        )
    checked: Progress = progress
    return checked


def check_statistics(contrasts: Sequence[Contrast], model: Model) -> None:
    """Refuse statistics that are constant or linear combinations of others, by name."""
    names = statistic_names(model)
    rows = sum(each.design.shape[0] for each in contrasts)
    # With fewer points than statistics some combination always vanishes: that is the prior's job.
    if rows <= len(names) or not _is_checked(rows, len(names)):
        return
    matrix = np.concatenate([each.design.dense()[:, :-1] for each in contrasts])
    spread = np.ptp(matrix, axis=0)
    constant = np.flatnonzero(spread <= 1e-12 * np.abs(matrix).max(axis=0))
    if len(constant):
        raise InputError(
            f"the statistic {names[constant[0]]!r} of {model_name(model)} is constant "
            f"({matrix[0, constant[0]]:g}) over data and noise, so it can't be told from the "
            "normalizing constant; leave it out of the model"
        )
    matrix -= matrix.mean(axis=0)
    matrix /= np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    _, pivots, rank, _ = dpstrf(matrix.T @ matrix, tol=COLLINEAR, lower=1)
    if rank == len(names):
        return
    kept, extra = pivots[:rank] - 1, int(pivots[rank] - 1)
    weights = np.linalg.lstsq(matrix[:, kept], matrix[:, extra], rcond=None)[0]
    partners = [names[kept[k]] for k in np.argsort(-np.abs(weights)) if abs(weights[k]) > 1e-6]
    listed = ", ".join(map(repr, partners[:5])) + (", ..." if len(partners) > 5 else "")
    raise InputError(
        f"the statistic {names[extra]!r} of {model_name(model)} is a linear combination of "
        f"{listed} (and a constant) over data and noise; leave one of them out of the model"
    )


def _is_checked(rows: int, statistics: int) -> bool:
    return statistics <= MOST_CHECKED and rows * statistics <= MOST_CHECKED_ENTRIES


def default_priors(contrasts: Sequence[Contrast], model: Model) -> dict[str, Prior]:
    """``theta_k ~ N(0, (10 / sd_k)^2)`` with sd_k the spread of statistic k over all points.

    Weak on any scale of the data: one sd of a statistic may change the log density by 10.
    """
    points = sum(len(each.offset) for each in contrasts)
    ones = [np.ones(len(each.offset)) for each in contrasts]
    pairs = list(zip(contrasts, ones, strict=True))
    mean = np.sum([each.design.rmatvec(one) for each, one in pairs], axis=0)[:-1] / points
    square = np.sum([each.design.gram_diagonal(one) for each, one in pairs], axis=0)[:-1] / points
    # Round-off leaves a share of 1e-15 of the square where a statistic hardly varies.
    spread = np.sqrt(np.maximum(square - mean**2, 1e-15 * square))
    spread[spread == 0] = 1.0
    priors: dict[str, Prior] = {}
    start = 0
    for block, names in model.groups.items():
        priors[block] = Normal(10 / spread[start : start + len(names)])
        start += len(names)
    return priors


def needed_bytes(
    model: Model, data: Mapping[str, FloatArray], sizes: Sequence[int], draws: int, chains: int
) -> tuple[float, float]:
    """Bytes that each process and all of them together are going to hold at their largest."""
    p = len(statistic_names(model)) + 1
    rows = [len(points) + m for points, m in zip(data.values(), sizes, strict=True)]
    # Points in four places; offset, labels, weights, log odds and what is made on the way to them.
    pooled = 8.0 * sum(rows) * (4 * model.space.dimension + 12)
    # Statistics, design and its weighted copy; a structured design has them in the check only.
    dense = not hasattr(model, "design") or _is_checked(sum(rows), p)
    matrix = 8.0 * p * (2 * sum(rows) + max(rows)) if dense else 0.0
    # Precision and factor by group; conjugate gradients and Woodbury have neither.
    square = 8.0 * min(p, max(rows)) ** 2 * (1 + len(rows))
    kept = 8.0 * draws * len(rows) * p
    return matrix + square + pooled + kept, 3 * chains * kept


def available_bytes() -> float:
    """Memory that this process may still use: the machine's, or its container's if less."""
    import psutil

    available = float(psutil.virtual_memory().available)
    limit = Path("/sys/fs/cgroup/memory.max")
    used = Path("/sys/fs/cgroup/memory.current")
    try:
        text = limit.read_text().strip()
        if text != "max":
            available = min(available, float(text) - float(used.read_text()))
    except OSError:
        pass  # no such control group: the machine's memory it is
    return available


def affordable_processes(
    each: float, together: float, wanted: int, available: float, fixed: bool
) -> int:
    """How many processes the memory allows, at most ``wanted``; InputError if not even one.

    ``fixed``: the user asked for just that many.
    """
    fits = int((available - together) // max(each, 1.0))
    if fits >= wanted or (fits >= 1 and not fixed):
        return min(fits, wanted)
    need = (each * (wanted if fixed else 1) + together) / GIGABYTE
    raise InputError(
        f"this fit needs about {need:.4g} GB of memory and {available / GIGABYTE:.4g} GB are "
        "available; lower noise_ratio, draws, chains or cores, use fewer rows, or a model with a "
        "structured design"
    )

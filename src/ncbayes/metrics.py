"""How good estimates of densities over time are: the paper's ABE, CP and AL (section 4.2).

Densities are given by their values at common evaluation points, as arrays (time, point), draws of
them as (draw, time, point). With points uniform in D, of volume |D|, the Monte Carlo integral
of f over D is ``|D| mean_i f(x_i)``. Like the paper, we divide every density by its own
(``rescaled``) before we compare: the estimate, the truth, and each draw, so that intervals
are those of densities that integrate to one.

>>> truth = np.array([[1.0, 3.0]])
>>> absolute_error(np.array([[2.0, 2.0]]), truth, volume=1.0)
0.5
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from ncbayes.base import BoolArray, FloatArray, InputError, shown
from ncbayes.spaces import Box, Reals, as_points, column_count, is_numeric, is_whole

KINDS = ("quantile", "sd")


def rectangle(points: object) -> Box:
    """The smallest box that holds all points: the paper's D; ``exp(log_volume)`` is its volume."""
    rows = as_points(points, Reals(column_count(points)), "rectangle(points)")
    return Box(rows.min(axis=0), rows.max(axis=0))


def evaluation_points(
    points: object, size: int = 500, seed: int | np.random.Generator | None = None
) -> FloatArray:
    """Points (size, dimension) drawn uniformly from the rectangle of all data.

    >>> evaluation_points([[0.0, 1.0], [2.0, 5.0]], seed=1).shape
    (500, 2)
    """
    if not is_whole(size) or size < 1:
        raise InputError(f"size must be a whole number, 1 or more, got {shown(size)}")
    is_seed = (
        seed is None or isinstance(seed, np.random.Generator) or (is_whole(seed) and seed >= 0)
    )
    if not is_seed:
        raise InputError(
            "seed must be a whole number, 0 or more, or a generator such as "
            f"np.random.default_rng(1), got {shown(seed)}"
        )
    return rectangle(points).uniform(int(size), np.random.default_rng(seed))


def rescaled(values: Any, volume: float) -> FloatArray:
    """``f / (volume mean_i f(x_i))``, for each time and each draw: (..., time, point)."""
    densities = _densities("values", values, (2, 3))
    _check_volume(volume)
    return _divided("values", densities, volume)


def absolute_error(estimate: Any, truth: Any, volume: float, *, rescale: bool = True) -> float:
    """The paper's ABE, ``T^-1 sum_t integral_D |estimate_t - truth_t|``, from 0 to 2.

    The integral is ``volume mean_i |estimate_t(x_i) - truth_t(x_i)|`` of the rescaled densities;
    there the volume cancels out. ``rescale=False`` takes both as they are.
    """
    one, other = (
        _densities(name, values, (2,))
        for name, values in (("estimate", estimate), ("truth", truth))
    )
    _check_volume(volume)
    _check_shapes(estimate=one, truth=other)
    if rescale:
        one, other = _divided("estimate", one, volume), _divided("truth", other, volume)
    return float(volume * np.abs(one - other).mean())


def intervals(
    draws: Any, volume: float, level: float = 0.95, kind: str = "quantile"
) -> tuple[FloatArray, FloatArray]:
    """Pointwise intervals (low, high), each (time, point), from draws (draw, time, point).

    Each draw is rescaled by its own Monte Carlo integral. ``kind="quantile"``: the quantiles
    (1 - level) / 2 and (1 + level) / 2; these can't reach a truth of nearly 0. ``kind="sd"``: mean
    +- z standard deviations; these may go below 0, and reach it.
    """
    densities = _densities("draws", draws, (3,))
    _check_volume(volume)
    if not (isinstance(level, float) and 0 < level < 1):
        raise InputError(f"level must be between 0 and 1, such as 0.95, got {shown(level)}")
    if kind not in KINDS:
        raise InputError(f"kind must be 'quantile' or 'sd', got {shown(kind)}")
    if len(densities) < 2:
        raise InputError("draws must be two or more to make an interval, got 1")
    ours = _divided("draws", densities, volume)
    if kind == "quantile":
        low, high = np.quantile(ours, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high
    mean, reach = ours.mean(axis=0), ndtri((1 + level) / 2) * ours.std(axis=0, ddof=1)
    return mean - reach, mean + reach


def high_density(truth: Any, share: float = 0.01) -> BoolArray:
    """Where the truth exceeds this share of its peak, the largest value at any point of its time.

    (time, point), for ``coverage(..., where=...)``. The share does not depend on the scale.
    """
    density = _densities("truth", truth, (2,))
    if not (isinstance(share, float | int) and 0 <= share < 1):
        raise InputError(f"share must be a number from 0 to below 1, got {shown(share)}")
    return np.asarray(density > share * density.max(axis=1, keepdims=True))


def coverage(low: Any, high: Any, truth: Any, where: Any = None) -> float:
    """The paper's CP: the share of pairs (time, point) with ``low <= truth <= high``.

    All three in the same units: ``low, high = intervals(draws, volume)`` goes with
    ``rescaled(truth, volume)``. ``where`` (time, point) restricts the pairs, such as to
    ``high_density(truth)``; None counts all of them.
    """
    low, high = _checked_interval(low, high)
    density = _densities("truth", truth, (2,))
    _check_shapes(low=low, truth=density)
    held = (low <= density) & (density <= high)
    if where is None:
        return float(held.mean())
    mask = np.asarray(where)
    if mask.dtype != np.bool_ or mask.shape != held.shape or not mask.any():
        raise InputError(
            f"where must be True and False of shape {held.shape}, with True somewhere, got "
            f"{mask.dtype} of shape {mask.shape} with {np.count_nonzero(mask)} that are not 0"
        )
    return float(held[mask].mean())


def average_length(low: Any, high: Any) -> float:
    """The paper's AL: the mean of ``high - low`` over all times and points."""
    low, high = _checked_interval(low, high)
    return float((high - low).mean())


def _numbers(name: str, values: Any, ranks: tuple[int, ...]) -> FloatArray:
    """Finite numbers with as many axes as allowed."""
    if not is_numeric(values) or np.ndim(values) not in ranks:
        axes = " or ".join("(draw, time, point)" if r == 3 else "(time, point)" for r in ranks)
        got = f"shape {np.shape(values)}" if is_numeric(values) else shown(values)
        raise InputError(f"{name} must be an array of numbers {axes}, got {got}")
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise InputError(
            f"{name} must hold finite numbers, got {array[place]} at {place} (counted from 0): "
            "leave this evaluation point out"
        )
    return array


def _densities(name: str, values: Any, ranks: tuple[int, ...]) -> FloatArray:
    array = _numbers(name, values, ranks)
    if (array < 0).any():
        place = tuple(int(k) for k in np.argwhere(array < 0)[0])
        raise InputError(
            f"{name} must hold densities, 0 or more, got {array[place]:.6g} at {place} (counted "
            "from 0): pass np.exp(...) if they are logarithms"
        )
    return array


def _divided(name: str, densities: FloatArray, volume: float) -> FloatArray:
    means = densities.mean(axis=-1, keepdims=True)
    if not (means > 0).all():
        place = tuple(int(k) for k in np.argwhere(means[..., 0] == 0)[0])
        raise InputError(
            f"{name} must be above 0 at some point of every time to be rescaled, got 0 at all "
            f"points of {place} (counted from 0): take more evaluation points"
        )
    return np.asarray(densities / (volume * means))


def _checked_interval(low: Any, high: Any) -> tuple[FloatArray, FloatArray]:
    bottom, top = _numbers("low", low, (2,)), _numbers("high", high, (2,))
    _check_shapes(low=bottom, high=top)
    if (bottom > top).any():
        place = tuple(int(k) for k in np.argwhere(bottom > top)[0])
        raise InputError(
            f"low must not exceed high, got {bottom[place]:.6g} and {top[place]:.6g} at {place} "
            "(counted from 0): swap them"
        )
    return bottom, top


def _check_shapes(**arrays: FloatArray) -> None:
    (one, first), (other, second) = arrays.items()
    if first.shape != second.shape:
        raise InputError(
            f"{one} and {other} must have the same shape (time, point), got {first.shape} and "
            f"{second.shape}"
        )


def _check_volume(volume: object) -> None:
    number = isinstance(volume, float | int | np.number) and not isinstance(volume, bool)
    if not (number and 0 < float(volume) < np.inf):  # type: ignore[arg-type]
        raise InputError(
            "volume must be a positive number, that of the domain of the evaluation points such as "
            f"np.exp(rectangle(points).log_volume), got {shown(volume)}"
        )

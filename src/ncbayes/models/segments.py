"""One number on a segment: the density ``exp(linear x - precision x^2 / 2)`` from low to high.

A truncated normal where the precision is positive, a truncated exponential where it is zero; where
it is negative the density rises toward both ends, and the segment must be bounded.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import dawsn, erfcx, ndtr, ndtri

from ncbayes.base import FloatArray

# With a smaller precision times squared length the square is linear on the segment, to 1e-13.
FLAT = 1e-12
# Steps that move no point by more of the segment than STILL are the last; about 10 are enough.
MOST_STEPS, STILL = 100, 1e-13
# From the starts below, the last step changes nothing that could be seen.
NEWTON_STEPS = 8


def log_mass(linear: FloatArray, precision: float, low: float, high: float) -> FloatArray:
    """Log of the integral of the density, for each value of ``linear``."""
    if abs(precision) * (high - low) ** 2 < FLAT:
        return _flat_mass(linear, precision, low, high)
    return (_normal_mass if precision > 0 else _rising_mass)(linear, precision, low, high)


def inverse_cdf(
    u: FloatArray, linear: FloatArray, precision: float, low: float, high: float
) -> FloatArray:
    """The point up to which a share u, 0 <= u < 1, of the mass lies, by value of ``linear``."""
    if abs(precision) * (high - low) ** 2 < FLAT:
        x = _flat_inverse(u, linear - precision * (low + high) / 2, low, high)
    else:
        x = (_normal_inverse if precision > 0 else _rising_inverse)(u, linear, precision, low, high)
    return np.clip(x, low, high)


def _normal_mass(linear: FloatArray, precision: float, low: float, high: float) -> FloatArray:
    root, center = math.sqrt(precision), linear / precision
    end, slope = _near_end(linear, precision, low, high)
    beside = _ratio(slope, precision, 0.0) - _ratio(slope, precision, high - low)
    outside = linear * end - precision * end**2 / 2 + np.log(beside / 2)
    with np.errstate(divide="ignore"):
        tails = ndtr((low - center) * root) + ndtr((center - high) * root)
        inside = linear * center / 2 + np.log1p(-tails)
    mode_within = (low <= center) & (center <= high)
    return np.where(mode_within, inside, outside) + math.log(2 * math.pi / precision) / 2


def _normal_inverse(
    u: FloatArray, linear: FloatArray, precision: float, low: float, high: float
) -> FloatArray:
    center = linear / precision
    within = (low <= center) & (center <= high)
    x = np.empty(len(u))
    x[within] = _around(u[within], center[within], math.sqrt(precision), low, high)
    u, linear, from_low = u[~within], linear[~within], center[~within] < low
    end, slope = _near_end(linear, precision, low, high)
    distance = _fallen(np.where(from_low, u, 1 - u), slope, precision, high - low)
    x[~within] = np.where(from_low, end + distance, end - distance)
    return x


def _around(u: FloatArray, center: FloatArray, root: float, low: float, high: float) -> FloatArray:
    """The inverse where the mode lies within."""
    a, b = (low - center) * root, (high - center) * root
    # Whichever of the two tail probabilities is not close to 1.
    lower = (1 - u) * ndtr(a) + u * ndtr(b)
    upper = (1 - u) * ndtr(-a) + u * ndtr(-b)
    return np.asarray(center + np.where(lower < upper, ndtri(lower), -ndtri(upper)) / root)


def _near_end(
    linear: FloatArray, precision: float, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """The end nearer to a mode outside of the segment, and how steeply the log density falls there.

    Where the mode lies within, low and 0: finite values to be thrown away.
    """
    center = linear / precision
    end = np.where(center > high, high, low)
    outside = (center > high) | (center < low)
    return end, np.where(outside, np.abs(linear - precision * end), 0.0)


def _ratio(slope: FloatArray, precision: float, distance: FloatArray | float) -> FloatArray:
    """``exp(-slope t - precision t^2 / 2) erfcx((slope / root + root t) / sqrt(2))``,

    twice the normal tail beyond the distance t from an end, by the density at that end.
    """
    root = math.sqrt(precision)
    t = np.minimum(distance, 1e300 / max(1.0, precision))
    with np.errstate(over="ignore"):
        fall = np.exp(-slope * t - precision * t * t / 2)
    return np.asarray(fall * erfcx((slope / root + root * t) / math.sqrt(2)))


def _fallen(u: FloatArray, slope: FloatArray, precision: float, length: float) -> FloatArray:
    """The distance from the end within which a share u of the mass lies.

    Newton on the log of the tail, which is concave: from a start beyond, it comes down.
    """
    root, scale = math.sqrt(precision), math.sqrt(2)
    whole = erfcx(slope / root / scale)
    # A share of 1 itself would be infinitely far away.
    u = np.minimum(u, np.nextafter(1.0, 0.0))
    log_tail = np.log1p(-u * (1 - _ratio(slope, precision, length) / whole))
    hazard = root * math.sqrt(2 / math.pi) / whole
    t = np.minimum(-log_tail / hazard, np.sqrt(-2 * log_tail) / root)
    for _ in range(NEWTON_STEPS):
        now = erfcx((slope / root + root * t) / scale)
        excess = np.log(now / whole) - slope * t - precision * t * t / 2 - log_tail
        t = np.maximum(t + excess * now * math.sqrt(math.pi / 2) / root, 0.0)
    return np.asarray(t)


def _flat_mass(linear: FloatArray, precision: float, low: float, high: float) -> FloatArray:
    middle, length = (low + high) / 2, high - low
    slope = linear - precision * middle
    rise = np.abs(slope) * length
    share = np.where(rise > 0, -np.expm1(-rise) / np.where(rise > 0, rise, 1.0), 1.0)
    top = linear * middle - precision * middle**2 / 2 + rise / 2
    return np.asarray(top + np.log(share) + math.log(length))


def _flat_inverse(u: FloatArray, slope: FloatArray, low: float, high: float) -> FloatArray:
    rise = np.abs(slope) * (high - low)
    # From the end where the density is highest, at a distance of log(1 - u (1 - exp(-rise))).
    from_top = np.where(slope > 0, 1 - u, u)
    safe = np.where(rise > 0, rise, 1.0)
    with np.errstate(divide="ignore"):
        distance = -np.log1p(from_top * np.expm1(-safe)) / safe
    share = np.where(rise > 0, distance, from_top)
    return np.where(slope > 0, high - share * (high - low), low + share * (high - low))


def _rising_mass(linear: FloatArray, precision: float, low: float, high: float) -> FloatArray:
    top = _top(linear, precision, low, high)
    at_top = linear * top - precision * top**2 / 2
    (below, _), (above, _) = (_risen(end, linear, precision, top) for end in (low, high))
    return np.asarray(at_top + np.log(above - below) + math.log(2 / -precision) / 2)


def _rising_inverse(
    u: FloatArray, linear: FloatArray, precision: float, low: float, high: float
) -> FloatArray:
    top = _top(linear, precision, low, high)
    (below, _), (above, _) = (_risen(end, linear, precision, top) for end in (low, high))
    wanted = (1 - u) * below + u * above
    left, right = np.full(len(u), float(low)), np.full(len(u), float(high))
    x = _flat_inverse(u, linear - precision * (low + high) / 2, low, high)
    unsettled = np.arange(len(u))
    for _ in range(MOST_STEPS):
        now = x[unsettled]
        share, slope = _risen(now, linear[unsettled], precision, top[unsettled])
        short = share < wanted[unsettled]
        left[unsettled[short]], right[unsettled[~short]] = now[short], now[~short]
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = now - (share - wanted[unsettled]) / slope
        # Where Newton leaves what encloses the answer, that is halved instead.
        inside = (moved > left[unsettled]) & (moved < right[unsettled])
        x[unsettled] = np.where(inside, moved, (left[unsettled] + right[unsettled]) / 2)
        unsettled = unsettled[np.abs(x[unsettled] - now) > STILL * (high - low)]
        if not len(unsettled):
            break
    return x


def _top(linear: FloatArray, precision: float, low: float, high: float) -> FloatArray:
    """The end with the higher density."""
    return np.where(linear - precision * (low + high) / 2 > 0, high, low)


def _risen(
    x: FloatArray | float, linear: FloatArray, precision: float, top: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The integral of the density up to x by the density at the top, and its derivative by x.

    It counts from where the density is lowest, in units of ``sqrt(2 / -precision)``: Dawson's
    integral of y times exp(y^2), for ``y = sqrt(-precision / 2) (x - linear / precision)``.
    """
    root = math.sqrt(-precision / 2)
    y = root * (x - linear / precision)
    height = np.exp(np.minimum((x - top) * (linear - precision * (x + top) / 2), 0.0))
    return np.asarray(dawsn(y) * height), root * height

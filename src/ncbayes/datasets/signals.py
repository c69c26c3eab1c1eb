"""From oscillating signals to phase angles: band-pass, analytic signal, angle."""

from __future__ import annotations

from typing import Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.datasets.arguments import check_count, is_finite_number
from ncbayes.spaces import is_numeric, wrapped

# In units of 1 / bandwidth. Of filtered white noise (orders 2 to 4, theta to beta bands), phases so
# far apart are correlated by at most 0.05, and a pure wave so far from an end has its phase right
# within 0.05 radians.
MEMORY = 3.0


def angles_from_signal(
    signal: Any,
    rate: float,
    band: tuple[float, float],
    time: Any = None,
    *,
    cycles: float | None = None,
    order: int = 3,
) -> FloatArray:
    """Phase angles (row, channel) in [0, 2 pi) of signals in a band of frequencies.

    A Butterworth band-pass of this order, run forward and backward so that it shifts no phase,
    then the angle of the analytic signal: 0 at a crest, pi at a trough.

    ``signal`` is trials x channels x samples, one row of angles for each trial, or channels x
    samples, one row for each time. ``rate`` is in samples a second, ``band`` in Hz, ``time`` in
    seconds from the first sample; the angle is that of the nearest sample.

    ``time=None``: for trials the middle sample; for one recording, every ``cycles`` cycles of the
    middle frequency of the band, staying away from both ends. A filtered signal remembers
    about 1 / bandwidth seconds, so that ``cycles=None`` puts 3 / bandwidth seconds between rows:
    filtered white noise then has nearly independent rows, a steady rhythm of the source does
    not. Close to the ends, within 3 / bandwidth seconds, phases are not to be trusted.
    """
    values = _checked_signal(signal)
    low, high = _checked_band(rate, band)
    check_count("order", order, 1)
    samples = values.shape[-1]
    if time is not None and cycles is not None:
        raise InputError("pass time, or cycles and no time: each says which times to take")
    if cycles is not None and values.ndim == 3:
        raise InputError(
            "cycles is for one recording, channels x samples; for trials pass time, got a signal "
            f"of shape {values.shape}"
        )
    if time is not None:
        at = _given(time, rate, values)
    elif values.ndim == 3:
        at = np.array([samples // 2])
    else:
        at = _spaced(samples, rate, low, high, cycles)
    waves = _analytic(values, rate, low, high, order)[..., at]
    phases = wrapped(np.angle(waves))
    return np.ascontiguousarray(phases[..., 0] if values.ndim == 3 else phases.T)


def _checked_signal(signal: Any) -> FloatArray:
    if not is_numeric(signal) or np.ndim(signal) not in (2, 3):
        what = f"shape {np.shape(signal)}" if is_numeric(signal) else shown(signal)
        raise InputError(
            "signal must be an array of numbers, trials x channels x samples or channels x "
            f"samples, got {what}"
        )
    values = np.asarray(signal, dtype=np.float64)
    lost = np.argwhere(~np.isfinite(values))
    if len(lost):
        raise InputError(
            f"signal must hold finite numbers, got {values[tuple(lost[0])]} at "
            f"{_place(lost[0])}, and {len(lost)} such values in all: drop these trials or "
            "channels, or fill the gaps in"
        )
    flat = np.argwhere(np.ptp(values, axis=-1) == 0)
    if len(flat):
        raise InputError(
            "signal must vary to have a phase, got a constant at "
            f"{_place(flat[0], samples=False)}: drop this channel"
        )
    return values


def _place(index: Any, samples: bool = True) -> str:
    """Where in the signal, in words."""
    words = ("channel", "sample") if samples else ("channel",)
    words = ("trial", *words) if len(index) > len(words) else words
    places = [f"{word} {number}" for word, number in zip(words, index, strict=True)]
    return f"{', '.join(places)} (counted from 0)"


def _checked_band(rate: Any, band: Any) -> tuple[float, float]:
    if not is_finite_number(rate) or rate <= 0:
        raise InputError(f"rate must be a positive number of samples a second, got {shown(rate)}")
    edges = np.asarray(band, dtype=np.float64) if is_numeric(band) else np.empty(0)
    if edges.shape != (2,) or not 0 < edges[0] < edges[1] < rate / 2:
        raise InputError(
            f"band must be two frequencies (low, high) in Hz with 0 < low < high < {rate / 2:g}, "
            f"half the rate, got {shown(band)}"
        )
    return float(edges[0]), float(edges[1])


def _given(time: Any, rate: float, values: FloatArray) -> Any:
    """The samples nearest to the given times."""
    if not is_numeric(time) or np.ndim(time) > 1:
        raise InputError(f"time must be a number of seconds or a list of them, got {shown(time)}")
    times = np.atleast_1d(np.asarray(time, dtype=np.float64))
    if values.ndim == 3 and len(times) > 1:
        raise InputError(
            "time must be one number where there are trials, one row for each trial, got "
            f"{len(times)} times: call once for each time"
        )
    last = (values.shape[-1] - 1) / rate
    inside = (times >= 0) & (times <= last)
    if not inside.all():
        raise InputError(
            f"time must lie within the signal, from 0 to {last:g} seconds after its first sample, "
            f"got {times[~inside][0]:g}"
        )
    return np.rint(times * rate).astype(np.intp)


def _spaced(samples: int, rate: float, low: float, high: float, cycles: float | None) -> Any:
    """Samples so many cycles apart, none close to the ends."""
    memory, middle = MEMORY / (high - low), (low + high) / 2
    if cycles is not None and (not is_finite_number(cycles) or cycles < middle / rate):
        raise InputError(
            f"cycles must be a number of at least {middle / rate:g}, one sample at {middle:g} Hz, "
            f"got {shown(cycles)}"
        )
    seconds = memory if cycles is None else cycles / middle
    last = (samples - 1) / rate - memory
    if last <= memory:
        raise InputError(
            f"the recording is too short for the band: it lasts {samples / rate:g} seconds, and "
            f"{memory:g} at each end are lost to the filter; pass time to take some all the same"
        )
    return np.rint(np.arange(memory, last, seconds) * rate).astype(np.intp)


def _analytic(values: FloatArray, rate: float, low: float, high: float, order: int) -> Any:
    """The band-passed signal plus i times its Hilbert transform."""
    from scipy.signal import butter, hilbert, sosfiltfilt

    sections = butter(order, (low, high), btype="bandpass", fs=rate, output="sos")
    # What sosfiltfilt mirrors at each end; a signal must be longer.
    padding = 3 * (2 * len(sections) + 1)
    if values.shape[-1] <= padding:
        raise InputError(
            f"signal must have more than {padding} samples for a filter of order {order}, got "
            f"{values.shape[-1]}"
        )
    return hilbert(sosfiltfilt(sections, values, padlen=padding), axis=-1)

import math

import numpy as np
import pytest
import scipy.signal

from ncbayes.base import InputError
from ncbayes.datasets import angles_from_signal

RATE = 500.0
BAND = (12.0, 30.0)
STARTS = np.array([[0.0, 1.0, 4.0], [2.0, 3.0, 6.0]])


def cosines(starts, frequency=20.0, seconds=4.0, rate=RATE):
    """``cos(2 pi f t + start)`` for each start, on a slow drift."""
    t = np.arange(round(seconds * rate)) / rate
    waves = np.cos(2 * math.pi * frequency * t + starts[..., None])
    return waves + 3 + 0.5 * t


def distance(one, other):
    return np.abs(np.angle(np.exp(1j * (one - other)))).max()


@pytest.mark.parametrize("frequency", [15.0, 20.0, 27.0])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_phase_of_a_cosine_is_found(frequency, order):
    signal = cosines(STARTS, frequency)
    before = signal.copy()
    for time in (1.0, 1.234, 3.0):
        found = angles_from_signal(signal, RATE, BAND, time, order=order)
        assert found.shape == (2, 3)
        assert distance(found, 2 * math.pi * frequency * time + STARTS) < 0.01
        assert np.all((found >= 0) & (found < 2 * math.pi))
    assert np.array_equal(signal, before)


def test_a_filter_that_delays_would_be_seen(monkeypatch):
    """The broken twin: a filter run one way only."""
    monkeypatch.setattr(
        scipy.signal, "sosfiltfilt", lambda sos, x, padlen: scipy.signal.sosfilt(sos, x)
    )
    found = angles_from_signal(cosines(STARTS, 15.0), RATE, BAND, 1.0)
    assert distance(found, 2 * math.pi * 15 + STARTS) > 0.01


def test_the_middle_of_a_trial_is_the_default():
    signal = cosines(STARTS)
    expected = angles_from_signal(signal, RATE, BAND, 2.0)
    assert np.array_equal(angles_from_signal(signal, RATE, BAND), expected)


def test_one_recording_gives_a_row_for_each_time():
    signal, times = cosines(STARTS[0]), np.array([1.0, 1.5, 2.75])
    found = angles_from_signal(signal.tolist(), RATE, BAND, times)
    assert found.shape == (3, 3)
    assert distance(found, 2 * math.pi * 20 * times[:, None] + STARTS[0]) < 0.01
    one = angles_from_signal(signal, RATE, BAND, 1.5)
    assert np.array_equal(one, found[1:2])


def test_the_nearest_sample_is_taken_up_to_the_last():
    signal = cosines(STARTS)
    at = [angles_from_signal(signal, RATE, BAND, t) for t in (1.0, 1.0009, 1.0011, 1.002)]
    assert np.array_equal(at[0], at[1])
    assert np.array_equal(at[2], at[3])
    assert not np.array_equal(at[1], at[2])
    assert angles_from_signal(signal, RATE, BAND, 1999 / RATE).shape == (2, 3)


def test_rows_of_one_recording_are_so_many_cycles_apart():
    signal = cosines(STARTS[0], frequency=20.0, seconds=10.0)
    # 21 Hz is the middle of the band: 10.5 of its cycles are half a second, 10 of the cosine's.
    found = angles_from_signal(signal, RATE, BAND, cycles=10.5)
    first = 3 / 18
    assert len(found) == len(np.arange(first, 10 - first, 0.5))
    assert distance(found, found[:1]) < 0.05
    assert len(angles_from_signal(signal, RATE, BAND)) == 58


def test_rows_of_filtered_noise_are_nearly_independent_if_far_apart(seed):
    noise = np.random.default_rng(seed).standard_normal((1, 600_000))
    limit = 4.9

    def z(**options):
        angle = angles_from_signal(noise, RATE, BAND, **options)[:, 0]
        return abs(np.exp(1j * np.diff(angle)).mean()) * math.sqrt(2 * len(angle))

    # A correlation of 0.05 at most, by itself, and what chance adds to it.
    rows = 600_000 / RATE * 18 / 3
    assert z() < 0.05 * math.sqrt(2 * rows) + limit
    # The broken twin: rows a cycle apart.
    assert z(cycles=1.0) > 0.05 * math.sqrt(2 * rows) + limit


SIGNAL = cosines(STARTS)


def holed(index):
    signal = SIGNAL.copy()
    signal[index] = np.nan
    return signal


def flat(index):
    signal = SIGNAL.copy()
    signal[index] = 7.0
    return signal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signal": SIGNAL[0, 0]}, r"^signal must be .* x samples, got shape \(2000,\)$"),
        ({"signal": "wave"}, r"^signal must be an array of numbers, trials x .*, got 'wave'$"),
        ({"signal": np.zeros((2, 0))}, r"^signal must be an array of numbers, "),
        ({"signal": holed((1, 2, 7))}, r"got nan at trial 1, channel 2, sample 7 \(counted from 0"),
        ({"signal": holed((0, 1))[0]}, r"nan at channel 1, sample 0 .*, and 2000 such values in"),
        (
            {"signal": flat((1, 2))},
            r"got a constant at trial 1, channel 2 \(counted from 0\): drop",
        ),
        ({"signal": flat((0, 1))[0]}, r"a phase, got a constant at channel 1 \(counted from 0\)"),
        ({"rate": 0}, r"^rate must be a positive number of samples a second, got 0$"),
        ({"rate": "fast"}, r"^rate must be a positive number of samples a second, got 'fast'$"),
        (
            {"band": (0, 30)},
            r"^band must be two .* 0 < low < high < 250, half the rate, got \(0, 30",
        ),
        ({"band": (12, 250)}, r"half the rate, got \(12, 250\)$"),
        ({"band": (30, 12)}, r"half the rate, got \(30, 12\)$"),
        ({"band": (math.nan, 12)}, r"half the rate, got \(nan, 12\)$"),
        ({"band": 20}, r"half the rate, got 20$"),
        ({"band": "beta"}, r"half the rate, got 'beta'$"),
        ({"time": -0.1}, r"within the signal, from 0 to 3.998 seconds after .* sample, got -0.1$"),
        ({"time": 4.0}, r"within the signal, from 0 to 3.998 .*, got 4$"),
        ({"time": math.nan}, r"within the signal, .*, got nan$"),
        ({"time": "noon"}, r"^time must be a number of seconds or a list of them, got 'noon'$"),
        ({"time": [1.0, 2.0]}, r"one number where there are trials, .* got 2 times: call once for"),
        ({"cycles": 3}, r"^cycles is for one recording, .* got a signal of shape \(2, 3, 2000\)$"),
        ({"cycles": 3, "time": 1.0}, r"^pass time, or cycles and no time: "),
        (
            {"signal": SIGNAL[0], "cycles": 0},
            r"^cycles must be .* at least 0.042, one sample at 21",
        ),
        ({"signal": SIGNAL[0], "cycles": "few"}, r"^cycles must be a number .*, got 'few'$"),
        ({"signal": SIGNAL[0, :, :160]}, r"^the recording is too short .* it lasts 0.32 seconds, "),
        ({"signal": SIGNAL[:, :, :21]}, r"more than 21 samples for a filter of order 3, got 21$"),
        ({"order": 0}, r"^order must be a whole number, 1 or more, got 0$"),
    ],
)
def test_what_has_no_phase_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        angles_from_signal(**{"signal": SIGNAL, "rate": RATE, "band": BAND, **arguments})

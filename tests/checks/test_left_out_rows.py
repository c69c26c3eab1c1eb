"""p-values of means, where the model has nearly as many statistics as rows were simulated."""

from dataclasses import replace

import numpy as np

from ncbayes.checks.comparisons import Own, Resampled, compared

ROWS, SIMULATED, OWN, OTHERS = 40, 240, 60, 15


def p_values(seed, changed=lambda own: own, off=0.0, times=100):
    """Of data that are as simulated; ``changed`` is done to what is taken out."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(OWN, OTHERS)) / np.sqrt(OWN)
    found = []
    for _ in range(times):
        s = rng.normal(size=(ROWS + SIMULATED, OWN))
        t = s @ mix + rng.standard_exponential((ROWS + SIMULATED, OTHERS))
        t[:ROWS, 0] += off
        own = changed(Own.of(s[:ROWS], s[ROWS:]))
        sets = Resampled.drawn(ROWS, ROWS + SIMULATED, rng)
        found.append(compared(own, t[:ROWS], t[ROWS:], sets, SIMULATED).p_value)
    return np.array(found)


def test_chance_is_not_taken_for_a_difference(seed):
    """The twin counts what the regression owes to a simulated row itself."""
    assert np.mean(p_values(seed) < 0.1) < 0.15
    twin = p_values(seed, lambda own: replace(own, alone=np.ones_like(own.alone)))
    assert np.mean(twin < 0.1) > 0.2


def test_a_difference_is_found(seed):
    assert np.mean(p_values(seed, off=1.2, times=20) < 0.01) > 0.7


def test_a_row_is_judged_by_the_regression_on_the_others():
    """By dropping a simulated row and fitting again."""
    rng = np.random.default_rng(1)
    s, t = rng.normal(size=(50, 6)), rng.normal(size=(50, 2))
    _, left = Own.of(s[:5], s).without(t[:5], t)
    one = np.column_stack([np.ones(49), np.delete(s, 7, axis=0)])
    slopes = np.linalg.lstsq(one, np.delete(t, 7, axis=0), rcond=None)[0]
    np.testing.assert_allclose(
        left[7] - t.mean(axis=0), t[7] - np.array([1.0, *s[7]]) @ slopes, rtol=1e-3
    )

"""Scores that errors of theta do not move: against least squares, and on data with known truth."""

import numpy as np
import pytest

from ncbayes.checks.comparisons import Own, Resampled, compared

ROWS, SIMULATED = 100, 1500


def scored(own, data, simulated, rng):
    sets = Resampled.drawn(len(data), len(data) + len(simulated), rng)
    return compared(own, data, simulated, sets, len(simulated))


def powers(x):
    return np.column_stack([x, x**2])


def test_what_is_left_is_what_least_squares_leaves(seed):
    rng = np.random.default_rng(seed)
    s, t = rng.normal(size=(500, 3)), rng.normal(size=(500, 2))
    t += s @ rng.normal(size=(3, 2))
    own = Own.of(s[:50], s)
    ours, _ = own.without(t[:50], t)
    basis = np.column_stack([np.ones(500), s])
    wanted = t - basis @ np.linalg.lstsq(basis, t, rcond=None)[0]
    np.testing.assert_allclose(ours - t.mean(axis=0), wanted[:50], atol=1e-4)


def fitted_scores(count, rng, taken_out=True, skew=0.0):
    """z of x^3 over data sets of a normal that is fitted to each; ``skew``: of the data."""
    found = []
    for _ in range(count):
        x = rng.normal(size=ROWS)
        x = x + skew * (x**2 - 1)
        simulated = rng.normal(x.mean(), x.std(), size=SIMULATED)
        own = Own.of(powers(x), powers(simulated))
        if not taken_out:
            own = Own(own.data, own.simulated, None)
        found.append(scored(own, x[:, None] ** 3, simulated[:, None] ** 3, rng))
    return found


def test_scores_are_standard_normal_though_theta_is_estimated(seed):
    rng = np.random.default_rng(seed)
    z = np.array([each.z[0] for each in fitted_scores(300, rng)])
    assert abs(z.mean()) < 0.3
    assert 0.8 < z.std() < 1.2
    # The broken twin: as if theta were known, what was fitted makes scores far too small.
    blunt = np.array([each.z[0] for each in fitted_scores(300, rng, taken_out=False)])
    assert blunt.std() < 0.75


def test_p_values_are_right_and_small_where_the_model_is_wrong(seed):
    rng = np.random.default_rng(seed)
    right = np.array([each.p_value for each in fitted_scores(300, rng)])
    assert (right < 0.05).mean() < 0.1
    assert (right < 0.002).mean() < 0.02
    wrong = np.array([each.p_value for each in fitted_scores(50, rng, skew=0.4)])
    assert (wrong < 0.002).mean() > 0.9


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_rare_events_in_few_rows_raise_no_alarm(seed, share):
    """Skewed means: a normal tail alone would call one event in 20 rows a wonder."""
    rng = np.random.default_rng(seed)
    p_values = []
    for _ in range(300):
        data, simulated = (rng.random((size, 5)) < share for size in (20, SIMULATED))
        own = Own(np.zeros((20, 0)), np.zeros((SIMULATED, 0)), None)
        p_values.append(scored(own, data.astype(float), simulated.astype(float), rng).p_value)
    assert np.mean(np.array(p_values) < 0.01) < 0.04


def test_statistics_of_the_model_itself_say_nothing(seed):
    rng = np.random.default_rng(seed)
    x, simulated = rng.normal(0.3, 1, ROWS), rng.normal(size=SIMULATED)
    found = scored(
        Own.of(powers(x), powers(simulated)), 3 * x[:, None] - 1, 3 * simulated[:, None] - 1, rng
    )
    assert found.p_value == 1
    assert found.z[0] == 0


def test_what_was_never_simulated_is_seen_in_the_data(seed):
    rng = np.random.default_rng(seed)
    data = (rng.random((ROWS, 1)) < 0.1).astype(float)
    own = Own(np.zeros((ROWS, 0)), np.zeros((SIMULATED, 0)), None)
    assert scored(own, data, np.zeros((SIMULATED, 1)), rng).p_value < 1e-6
    assert scored(own, np.zeros((ROWS, 1)), np.zeros((SIMULATED, 1)), rng).p_value == 1


def test_the_spread_between_draws_counts_where_nothing_is_taken_out(seed):
    rng = np.random.default_rng(seed)
    simulated = rng.normal(size=(SIMULATED, 1))
    draws = 0.5 * rng.normal(size=64)
    own = Own.spread(simulated * draws)
    # The mean of x under exp(theta x) moves by theta Var(x).
    assert own.between_draws(simulated)[0] == pytest.approx(draws.var(), rel=0.1)
    data = rng.normal(0.8, 1, (ROWS, 1))
    assert scored(own, data, simulated, rng).p_value > 0.01
    assert scored(Own.spread(simulated * draws * 0.01), data, simulated, rng).p_value < 1e-6

"""Adaptation of step size and metric."""

import numpy as np
import pytest

from ncbayes.engines import warmup


def test_windows_are_those_of_stan():
    ends = [k + 1 for k, (_, ends) in enumerate(warmup.schedule(1000)) if ends]
    assert ends == [100, 150, 250, 450, 950]
    slow = [slow for slow, _ in warmup.schedule(1000)]
    assert slow == [False] * 75 + [True] * 875 + [False] * 50


@pytest.mark.parametrize("sweeps", [1, 19, 20, 60, 149, 150, 151, 333, 2000])
def test_the_schedule_covers_every_sweep_and_ends_each_window(sweeps):
    plan = warmup.schedule(sweeps)
    assert len(plan) == sweeps
    assert all(slow for slow, ends in plan if ends)
    slow = [k for k, (slow, _) in enumerate(plan) if slow]
    if sweeps >= warmup.FEWEST:
        assert plan[slow[-1]] == (True, True)


def adapted(memory, positions, acceptance, sweeps, wanted=0.8):
    for position in positions:
        rate = acceptance(float(memory["step_size"]))
        memory = warmup.advanced(memory, sweeps, position, rate, wanted)
    return memory


@pytest.mark.parametrize("dense", [True, False])
def test_step_size_and_metric_become_what_they_should(dense, seed):
    rng = np.random.default_rng(seed)
    covariance = np.array([[4.0, 0.9], [0.9, 0.25]])
    positions = rng.multivariate_normal([5.0, -3.0], covariance, 1000)
    memory = warmup.begun(np.eye(2) if dense else np.ones(2), 1000)
    # Acceptance falls with the step size, and is 0.8 at 0.3.
    memory = adapted(memory, positions, lambda size: 0.8 ** ((size / 0.3) ** 2), 1000)
    assert set(memory) == {"step_size", "inverse_mass"}
    assert abs(np.log(memory["step_size"] / 0.3)) < 0.1
    # The last window has 500 positions; 5 of the metric before count besides.
    last = np.cov(positions[450:950], rowvar=False)
    wanted = last if dense else np.diag(last)
    assert np.all(np.abs(memory["inverse_mass"] - wanted) < 0.02 * np.abs(wanted) + 0.05)


def test_welford_is_the_covariance():
    positions = np.random.default_rng(0).normal(3.0, 2.0, (40, 3))
    memory = warmup.begun(np.eye(3), 100)
    for position in positions:
        memory = {**memory, **warmup._counted(memory, position)}
    assert np.allclose(memory["mean"], positions.mean(axis=0))
    assert np.allclose(memory["squares"] / 39, np.cov(positions, rowvar=False))


def test_nothing_changes_after_the_warm_up_and_a_lost_rate_counts_as_zero():
    memory = warmup.begun(np.ones(2), 0)
    assert warmup.advanced(memory, 0, np.zeros(2), 0.1, 0.8) is memory
    begun = warmup.begun(np.ones(2), 5)
    lost = warmup.advanced(begun, 5, np.zeros(2), float("nan"), 0.8)
    zero = warmup.advanced(begun, 5, np.zeros(2), 0.0, 0.8)
    assert lost["step_size"] == zero["step_size"]

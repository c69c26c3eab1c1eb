import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy.special import iv, ndtri
from scipy.stats import t, vonmises

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.datasets import simulators, torus_chain, torus_cycle, torus_random
from ncbayes.models import TorusGraph


def limit(count):
    """The largest of ``count`` z-scores that chance allows once in a million times."""
    return -ndtri(1e-6 / 2 / count)


def largest_z(model, x, mean, chosen=slice(None)):
    """The largest z-score of the mean statistics of independent rows, and its limit."""
    statistics = model.statistics(x)[:, chosen]
    z = (statistics.mean(axis=0) - mean) / (statistics.std(axis=0) / math.sqrt(len(x)))
    return np.abs(z).max(), limit(len(z))


def names(model):
    return [name for block in model.groups.values() for name in block]


@pytest.mark.parametrize(("mean", "concentration"), [(math.pi / 6, 2.0), (-2.0, 0.7), (9.0, 30.0)])
def test_the_chain_is_the_torus_graph_that_it_says(mean, concentration, seed):
    found = torus_chain(3, nodes=6, mean=mean, concentration=concentration, seed=seed)
    x = found.model.space.uniform(50, np.random.default_rng(seed))
    directions = np.column_stack([np.full(50, mean), x[:, :-1] + mean])
    expected = vonmises.logpdf(x, concentration, loc=directions).sum(axis=1)
    log_density = found.model.statistics(x) @ found.theta - found.log_z
    assert log_density == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # The broken twin: the sine of xk - xj for that of xj - xk.
    turned = np.array(
        [-1 if " - " in name and name[0] == "s" else 1 for name in names(found.model)]
    )
    assert np.abs(found.model.statistics(x) @ (turned * found.theta - found.theta)).max() > 0.1


def test_the_chain_is_that_of_the_paper():
    found = torus_chain(seed=1)
    assert found.data.shape == (200, 12)
    assert found.model == TorusGraph(12)
    assert found.edges == tuple((f"x{j}", f"x{j + 1}") for j in range(1, 12))
    true = {
        name: value
        for name, value in zip(names(found.model), found.theta, strict=True)
        if value != 0
    }
    assert len(true) == 2 + 2 * 11
    assert true["cos(x1)"] == true["cos(x4 - x5)"] == pytest.approx(math.sqrt(3))
    assert true["sin(x1)"] == -true["sin(x4 - x5)"] == pytest.approx(1)
    assert found.model.space.contains(found.data).all()


def test_the_chain_has_its_moments(seed):
    """Steps are independent with E exp(i step) = exp(i mean) A, A = I1(k) / I0(k)."""
    found = torus_chain(20_000, nodes=5, seed=seed)
    step = np.exp(1j * math.pi / 6) * iv(1, 2.0) / iv(0, 2.0)
    powers = step ** np.arange(1, 6)
    mean = np.column_stack([powers.real, powers.imag]).ravel()
    worst, allowed = largest_z(found.model, found.data, mean, slice(10))
    assert worst < allowed
    differences = {
        f"x{j}": {f"x{k}": step ** (k - j) for k in range(j + 1, 6)} for j in range(1, 5)
    }
    ours = [k for k, name in enumerate(names(found.model)) if " - " in name]
    mean = [
        part
        for one, other in found.model.edges
        for part in (differences[one][other].real, -differences[one][other].imag)
    ]
    worst, allowed = largest_z(found.model, found.data, np.array(mean), ours)
    assert worst < allowed
    # The broken twin: a chain of another concentration.
    other = torus_chain(20_000, nodes=5, concentration=1.7, seed=seed)
    worst, allowed = largest_z(other.model, other.data, np.array(mean), ours)
    assert worst > allowed


@functools.cache
def cycle_by_brute_force(points=14):
    """log Z and the mean statistics of the cycle by a grid over five angles, slice by slice."""
    model, theta = TorusGraph(5), torus_cycle(1, seed=0).theta
    axis = 2 * math.pi * np.arange(points) / points
    rest = np.stack(np.meshgrid(*[axis] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    total, sums = 0.0, np.zeros(len(theta))
    for first in axis:
        design = model.design(np.column_stack([np.full(len(rest), first), rest]))
        weights = np.exp(design.matvec(theta))
        total, sums = total + weights.sum(), sums + design.rmatvec(weights)
    return math.log(total) + 5 * math.log(2 * math.pi / points), sums / total


def test_the_cycle_is_that_of_the_paper(seed):
    found = torus_cycle(seed=seed)
    assert found.data.shape == (1000, 5)
    assert found.model == TorusGraph(5)
    assert found.edges == (("x1", "x3"), ("x1", "x4"), ("x2", "x4"), ("x2", "x5"), ("x3", "x5"))
    assert not found.theta[:10].any()
    couplings = dict(zip(found.model.edges, found.theta[10:].reshape(-1, 4).tolist(), strict=True))
    assert couplings == {
        edge: [0.3] * 4 if edge in found.edges else [0.0] * 4 for edge in found.model.edges
    }
    assert found.log_z == pytest.approx(cycle_by_brute_force()[0], rel=1e-9)


def test_no_point_of_the_cycle_is_above_the_bound(seed):
    found = torus_cycle(1, seed=seed)
    bound = simulators._bound(dict.fromkeys(simulators.CYCLE, simulators.CYCLE_COUPLING))
    assert bound == pytest.approx(5 * 2 * 0.3 * math.sqrt(2))
    x = found.model.space.uniform(20_000, np.random.default_rng(seed))
    assert (found.model.statistics(x) @ found.theta).max() < bound


def test_the_cycle_has_its_moments(seed, monkeypatch):
    found, (_, mean) = torus_cycle(20_000, seed=seed), cycle_by_brute_force()
    worst, allowed = largest_z(found.model, found.data, mean)
    assert worst < allowed
    # The broken twin: a bound that is too small, as if the amplitudes of one edge sufficed.
    monkeypatch.setattr(simulators, "_bound", lambda links: 0.6 * math.sqrt(2))
    broken = torus_cycle(20_000, seed=seed)
    worst, allowed = largest_z(broken.model, broken.data, mean)
    assert worst > allowed


def test_the_batches_of_the_cycle_do_not_show(monkeypatch):
    monkeypatch.setattr(simulators, "BATCH", 100)
    found = torus_cycle(50, seed=1)
    assert found.data.shape == (50, 5)
    assert len(np.unique(found.data)) == 250


def test_the_random_graph_depends_on_its_own_seed_only():
    first, second = torus_random(2, tune=0, seed=1), torus_random(5, tune=3, seed=2)
    alone = torus_random(3, independent=True, nodes=30, seed=3)
    assert first.edges == second.edges == alone.edges
    assert np.array_equal(first.theta, second.theta)
    assert not np.array_equal(first.data, second.data[:2])
    assert torus_random(2, tune=0, graph_seed=2).edges != first.edges
    assert torus_random(2, tune=0, nodes=4, probability=0.0).edges == ()
    everything = torus_random(2, tune=0, nodes=4, probability=1.0)
    assert everything.edges == everything.model.edges


def test_the_random_graph_is_that_of_the_paper():
    found = torus_random(2, tune=0, seed=1)
    assert found.model == TorusGraph(30)
    assert found.log_z is None
    # 435 pairs, one in ten: 43.5 edges, with a standard deviation of 6.3.
    assert 43.5 - 31 < len(found.edges) < 43.5 + 31
    couplings = dict(zip(found.model.edges, found.theta[60:].reshape(-1, 4).tolist(), strict=True))
    assert not found.theta[:60].any()
    for edge in found.model.edges:
        assert couplings[edge] == ([0.3, 0.3, 0, 0] if edge in found.edges else [0] * 4)


class Recorder:
    """A random source that notes what it is asked for, and answers with fixed angles."""

    def __init__(self, start, answers):
        self.start, self.answers, self.asked = start, answers.ravel(), []

    def uniform(self, low, high, size):
        return self.start.copy()

    def vonmises(self, direction, concentration):
        self.asked.append((float(np.squeeze(direction)), float(np.squeeze(concentration))))
        return self.answers[len(self.asked) - 1]


def test_the_chain_of_sweeps_asks_for_the_conditionals_of_the_model(seed):
    rng = np.random.default_rng(seed)
    truth = torus_random(1, nodes=8, probability=0.4, tune=0, seed=1)
    start, answers = rng.uniform(0, 2 * math.pi, 8), rng.uniform(0, 2 * math.pi, (3, 8))
    ours, theirs = Recorder(start, answers), Recorder(start, answers)
    number = {name: k for k, name in enumerate(truth.model.nodes)}
    links = {(number[a], number[b]): simulators.RANDOM_COUPLING for a, b in truth.edges}
    data = simulators._one_chain(simulators._rotations(8, links), 2, 1, ours)
    x = start[None]
    for _ in range(3):
        x = truth.model.sweep(truth.theta, x, theirs)
    assert data == pytest.approx(answers[1:])
    asked, expected = np.array(ours.asked), np.array(theirs.asked)
    assert asked[:, 1] == pytest.approx(expected[:, 1], abs=1e-12)
    # Where nothing acts on a node its direction means nothing.
    felt = expected[:, 1] > 1e-9
    assert felt.any()
    turned = np.exp(1j * (asked - expected)[felt, 0])
    assert turned == pytest.approx(np.ones(felt.sum()))


BATCHES = 50


def batch_z(one, other):
    """The largest z-score between the means of autocorrelated rows and of independent ones."""
    means = one.reshape(BATCHES, -1, one.shape[1]).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / BATCHES + other.var(axis=0) / len(other))
    return np.abs((one.mean(axis=0) - other.mean(axis=0)) / error).max()


def test_one_chain_and_independent_rows_agree(seed):
    """A batch is 100 sweeps, far more than the chain remembers."""
    options = {"nodes": 6, "probability": 0.5, "seed": seed}
    chain = torus_random(5000, tune=200, **options)
    alone = torus_random(5000, independent=True, **options)
    assert chain.edges
    one, other = (found.model.statistics(found.data) for found in (chain, alone))
    allowed = t.isf(1e-6 / 2 / one.shape[1], BATCHES - 1)
    assert batch_z(one, other) < allowed
    # The broken twin: angles that know nothing of each other.
    shuffled = np.random.default_rng(seed).permuted(alone.data, axis=0)
    assert batch_z(one, alone.model.statistics(shuffled)) > allowed


@pytest.mark.parametrize(
    "simulate",
    [torus_chain, torus_cycle, lambda n, seed: torus_random(n, nodes=5, tune=5, seed=seed)],
    ids=["chain", "cycle", "random"],
)
def test_a_seed_repeats_and_angles_lie_on_the_torus(simulate):
    found = simulate(20, seed=3)
    assert np.array_equal(found.data, simulate(20, seed=3).data)
    assert np.array_equal(found.data, simulate(20, seed=np.random.default_rng(3)).data)
    assert not np.array_equal(found.data, simulate(20, seed=None).data)
    assert found.model.space.contains(found.data).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.data = None


def test_the_paper_runs_in_one_call():
    assert ncb.datasets.torus_random(seed=1).data.shape == (1000, 30)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torus_chain(0), r"^n must be a whole number, 1 or more, got 0$"),
        (lambda: torus_cycle(2.5), r"^n must be a whole number, 1 or more, got 2.5$"),
        (lambda: torus_random(True), r"^n must be a whole number, 1 or more, got True$"),
        (lambda: torus_chain(5, nodes=1), r"^nodes must be a whole number, 2 or more, got 1$"),
        (lambda: torus_random(5, nodes="a"), r"^nodes must be a whole number, 2 or .* got 'a'$"),
        (lambda: torus_chain(5, mean="a"), r"^mean must be an angle in radians, got 'a'$"),
        (lambda: torus_chain(5, mean=math.inf), r"^mean must be an angle in radians, got inf$"),
        (lambda: torus_chain(5, concentration=-1), r"^concentration must be .*0 or more, got -1$"),
        (lambda: torus_random(5, probability=2), r"from 0 to 1, the chance of an edge, got 2$"),
        (lambda: torus_random(5, probability=math.nan), r"^probability must be .*, got nan$"),
        (lambda: torus_random(5, tune=-1), r"^tune must be a whole number, 0 or more, got -1$"),
        (lambda: torus_random(5, independent=1), r"^independent must be True or False, got 1$"),
        (
            lambda: torus_chain(5, seed=-1),
            r"^seed must be a whole number, 0 or more, or a gen.*-1$",
        ),
        (lambda: torus_chain(5, seed="a"), r"^seed must be .* np.random.default_rng\(1\), got 'a'"),
        (lambda: torus_random(5, graph_seed=1.5), r"^graph_seed must be a whole .*, got 1.5$"),
    ],
)
def test_what_cannot_be_simulated_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()

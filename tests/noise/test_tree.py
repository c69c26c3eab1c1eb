import math
import os
import pickle
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import i0e, i1e

from ncbayes import noise
from ncbayes.base import InputError, Noise
from ncbayes.noise import tree
from ncbayes.spaces import Torus
from ncbayes.testing import check_noise

SEED = int(os.environ.get("NCBAYES_TEST_SEED", "1"))
TURN = 2 * math.pi
NATURAL = np.array([[0.5, -0.3], [0.2, 0.4], [-0.6, 0.1]])
COUPLING = np.array([np.zeros((2, 2)), [[1.5, 0.4], [-0.2, 1.1]], [[-1.0, 0.8], [0.3, 1.2]]])


def rng():
    return np.random.default_rng(SEED)


def chain(d, strength=1.5):
    """A tree x1 - x2 - ... whose neighbours attract each other."""
    coupling = np.repeat(strength * np.eye(2)[None], d, axis=0)
    natural = 0.3 * np.random.default_rng(7).standard_normal((d, 2))
    return noise.Tree(list(range(-1, d - 1)), natural, coupling)


def edges(found):
    return {tuple(sorted(edge)) for edge in found.edges}


@dataclass(frozen=True)
class Twin:
    """Draws of one noise, the density of another times a factor."""

    drawn: Any
    evaluated: Any
    factor: float = 1.0

    def sample(self, size, rng):
        return self.drawn.sample(size, rng)

    def log_density(self, x):
        return self.evaluated.log_density(x) + math.log(self.factor)


def test_the_density_is_the_product_of_its_conditionals():
    ours = noise.Tree([1, -1, 1], NATURAL, COUPLING[[1, 0, 2]])
    x = rng().uniform(0, TURN, (40, 3))
    expected = np.zeros(40)
    for i, point in enumerate(x):
        for k, j in enumerate([1, None, 1]):
            v = NATURAL[k]
            if j is not None:
                v = v + COUPLING[[1, 0, 2]][k] @ [math.cos(point[j]), math.sin(point[j])]
            one = stats.vonmises(np.hypot(*v), loc=math.atan2(v[1], v[0]))
            expected[i] += one.logpdf(point[k])
    assert ours.log_density(x) == pytest.approx(expected)


def test_a_tree_without_edges_is_independent_von_mises():
    data = rng().vonmises(2.0, 1.5, (50, 2))
    alone = noise.VonMises.match(data)
    k, mean = alone.concentration, alone.mean
    ours = noise.Tree((-1, -1), np.column_stack([k * np.cos(mean), k * np.sin(mean)]), COUPLING[:2])
    x = ours.sample(30, rng())
    assert ours.log_density(x) == pytest.approx(alone.log_density(x))
    assert ours.edges == []


def test_the_density_integrates_to_one_on_a_grid():
    # The trapezoid rule on a turn is exact for all frequencies below the number of steps.
    side = np.arange(64) * TURN / 64
    grid = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    for parent in ([-1, 0, 1], [-1, 0, 0], [2, 2, -1], [-1, -1, 0]):
        ours = noise.Tree(parent, NATURAL, COUPLING)
        assert np.exp(ours.log_density(grid)).mean() * TURN**3 == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_draws_follow_the_density(d):
    matched = noise.Tree.match(chain(d).sample(300, rng()))
    for ours in (chain(d), matched):
        draws = ours.sample(7, rng())
        assert isinstance(ours, Noise)
        assert draws.shape == (7, d)
        assert draws.dtype == np.float64
        assert ours.sample(0, rng()).shape == (0, d)
        assert Torus(d).contains(draws).all()
        assert np.array_equal(pickle.loads(pickle.dumps(ours)).sample(7, rng()), draws)
        check_noise(ours, Torus(d), seed=SEED)


@pytest.mark.parametrize("d", [2, 5])
def test_draws_of_another_tree_or_density_are_rejected(d):
    ours = chain(d)
    flipped = np.array(ours.coupling)
    flipped[d - 1] *= -1
    turned = replace(ours, coupling=flipped)
    for twin in (Twin(turned, ours), Twin(ours, ours, 1.2)):
        with pytest.raises(AssertionError, match=r"do not follow its log_density|not normalized"):
            check_noise(twin, Torus(d), seed=SEED)


def test_the_density_vanishes_outside_one_turn():
    ours = chain(2)
    inside = ours.sample(5, rng())
    for move in ([TURN, 0], [0, -TURN], [0, math.inf], [math.nan, 0]):
        assert (ours.log_density(inside + move) == -math.inf).all()


def objective(numbers, data, child, parent, ridge):
    """The penalized conditional log likelihood, written out; the first column is centered."""
    coef = numbers.reshape(2, 3)
    u = np.column_stack([np.cos(data[:, parent]), np.sin(data[:, parent])])
    v = coef[:, 0] + (u - u.mean(axis=0)) @ coef[:, 1:].T
    k = np.hypot(*v.T)
    x = data[:, child]
    terms = v[:, 0] * np.cos(x) + v[:, 1] * np.sin(x) - k - np.log(TURN * i0e(k))
    return terms.sum() - ridge / 2 * (numbers**2).sum()


def centered(found, data, child, parent):
    u = np.column_stack([np.cos(data[:, parent]), np.sin(data[:, parent])]).mean(axis=0)
    natural, coupling = found.natural[child], found.coupling[child]
    return np.column_stack([natural + coupling @ u, coupling]).ravel()


@pytest.mark.parametrize("strength", [0.8, 3.0, 40.0])
def test_the_matched_numbers_are_the_optimum(strength):
    data = chain(2, strength).sample(400, rng())
    found = noise.Tree.match(data)
    [(parent, child)] = found.edges
    ridge = 1e-3 / (1 + noise.VonMises.match(data[:, child]).concentration[0] ** 2)
    numbers = centered(found, data, child, parent)
    arguments = data, child, parent, ridge
    slope = optimize.approx_fprime(numbers, objective, 1e-6, *arguments)
    # One standard error of a coefficient moves the slope by the root of its curvature.
    step = 1e-3 * np.eye(6)
    bend = [
        2 * objective(numbers, *arguments)
        - objective(numbers + e, *arguments)
        - objective(numbers - e, *arguments)
        for e in step
    ]
    assert np.abs(slope).max() < 1e-3 * math.sqrt(max(bend) / 1e-6)
    best = optimize.minimize(lambda p: -objective(p, *arguments), numbers, method="BFGS")
    assert -best.fun == pytest.approx(objective(numbers, *arguments), abs=1e-6)


def test_the_derivatives_are_those_of_finite_differences():
    data = chain(3).sample(30, rng())
    features = np.column_stack([np.ones(30), np.cos(data[:, 0]), np.sin(data[:, 0])])
    units, ridge = np.stack([np.cos(data), np.sin(data)]), np.array([0.1, 0.2, 0.3])
    coef = rng().standard_normal((3, 2, 3))
    coef[0] = 0
    gradient, curvature = tree._derivatives(coef, features, units, ridge)
    for column in range(3):
        for i in range(6):
            step = np.zeros((3, 6))
            step[column, i] = 1e-5
            ahead, behind = coef + step.reshape(3, 2, 3), coef - step.reshape(3, 2, 3)
            rise = [tree._objective(c, features, units, ridge)[column] for c in (ahead, behind)]
            assert gradient[column, i] == pytest.approx((rise[0] - rise[1]) / 2e-5, abs=1e-6)
            bend = [
                tree._derivatives(c, features, units, ridge)[0][column] for c in (ahead, behind)
            ]
            assert -curvature[column, i] == pytest.approx((bend[0] - bend[1]) / 2e-5, abs=1e-5)


def test_gains_are_those_of_the_log_likelihood():
    data = chain(2, 2.0).sample(500, rng())
    found, alone = noise.Tree.match(data), noise.VonMises.match(data)
    natural = alone.concentration[:, None] * np.column_stack(
        [np.cos(alone.mean), np.sin(alone.mean)]
    )
    [(parent, child)] = found.edges
    gain = tree._conditionals(data, parent, natural)[1]
    plain = found.log_density(data).sum() - alone.log_density(data).sum()
    assert gain[child] == pytest.approx(plain, abs=0.01)
    assert gain[parent] == 0


def test_the_tree_of_a_chain_is_found():
    data = chain(4).sample(1000, rng())
    order = [2, 0, 3, 1]
    assert edges(noise.Tree.match(data)) == {(0, 1), (1, 2), (2, 3)}
    moved = noise.Tree.match(data[:, order])
    assert {tuple(sorted((order[a], order[b]))) for a, b in moved.edges} == {(0, 1), (1, 2), (2, 3)}
    assert list(moved.parent).count(-1) == 1


def test_independent_angles_have_no_edge():
    # Twice a gain is chi-square with 4 degrees of freedom, and 3 pairs may exceed 4 log n.
    assert 3 * stats.chi2(4).sf(4 * math.log(10_000)) < 1e-6
    found = noise.Tree.match(rng().uniform(0, TURN, (10_000, 3)))
    assert found.edges == []
    assert np.array_equal(found.coupling, np.zeros((3, 2, 2)))


def test_two_pairs_make_two_trees():
    data = np.hstack(
        [chain(2).sample(1000, rng()), chain(2).sample(1000, np.random.default_rng([SEED, 2]))]
    )
    assert edges(noise.Tree.match(data)) == {(0, 1), (2, 3)}


def test_the_tree_is_that_of_largest_gain_among_all():
    gains = np.random.default_rng(3).uniform(6, 20, (4, 4))
    np.fill_diagonal(gains, 0)
    parent = tree._strongest_tree(gains, 5.0)

    def trees():
        for code in np.ndindex(5, 5, 5, 5):
            each = np.array(code) - 1
            if (each < 0).sum() == 1 and len(tree._parents_first(each)) == 4:
                yield each

    def total(each, table):
        return sum(table[j, k] for k, j in enumerate(each) if j >= 0)

    both = (gains + gains.T) / 2
    highest = max(total(each, both) for each in trees())
    assert total(parent, both) == pytest.approx(highest)
    same = [each for each in trees() if math.isclose(total(each, both), highest)]
    assert total(parent, gains) == pytest.approx(max(total(each, gains) for each in same))


def test_copies_and_constants_stay_finite():
    angle = rng().uniform(0, TURN, 60)
    data = np.column_stack([np.full(60, 1.0), angle, angle, (angle + 1) % TURN, -angle % TURN])
    found = noise.Tree.match(data)
    assert found.parent[0] == -1
    assert 0 not in found.parent
    assert len(found.edges) == 3
    assert np.isfinite(found.log_density(data)).all()
    assert np.isfinite(found.log_density(found.sample(1000, rng()))).all()
    assert np.hypot(*np.transpose(found.natural)).max() <= 1e6


def test_narrow_angles_keep_their_dependence():
    z = rng().standard_normal((2000, 2))
    data = 3 + 0.02 * np.column_stack([z[:, 0], 0.9 * z[:, 0] + math.sqrt(0.19) * z[:, 1]])
    found = noise.Tree.match(data)
    gain = found.log_density(data).sum() - noise.VonMises.match(data).log_density(data).sum()
    # Nearly normal, with correlation 0.9: the gain of a row is -log(1 - 0.81) / 2.
    assert gain / 2000 == pytest.approx(-math.log(0.19) / 2, abs=0.1)
    scaled = (found.sample(2000, rng()) - 3) / 0.02
    assert np.corrcoef(scaled.T)[0, 1] == pytest.approx(0.9, abs=0.04)


def test_bessel_ratios_hold_at_both_ends():
    features, units = np.ones((1, 3)) * [1, 0, 0], np.array([[[1.0]], [[0.0]]])
    for k, across in ((0.0, 0.5), (1e-6, 0.5), (9e5, i1e(9e5) / i0e(9e5) / 9e5)):
        coef = np.zeros((1, 2, 3))
        coef[0, 0, 0] = k
        gradient, curvature = tree._derivatives(coef, features, units, np.zeros(1))
        assert np.isfinite(gradient).all()
        assert curvature[0, 3, 3] == pytest.approx(across)
        along = 0.5 if k < 1 else 1 / (2 * k**2)
        assert curvature[0, 0, 0] == pytest.approx(along, rel=2e-3)


def test_matching_is_quick():
    data = chain(12).sample(200, rng())
    start = time.process_time()
    noise.Tree.match(data)
    assert time.process_time() - start < 2


def test_a_frame_is_matched_as_its_values():
    data = chain(2).sample(100, rng())
    plain, frame = noise.Tree.match(data), noise.Tree.match(pd.DataFrame(data, columns=["a", "b"]))
    assert np.array_equal(plain.coupling, frame.coupling)


ANGLES = np.linspace(0, 6, 22).reshape(11, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: noise.Tree.match(ANGLES[:9]), "data must have at least 10 rows, .* got 9$"),
        (
            lambda: noise.Tree.match(np.where(ANGLES > 5, np.nan, ANGLES)),
            "finite numbers, got miss",
        ),
        (lambda: noise.Tree.match(100 * ANGLES), "angles must be in radians"),
        (lambda: noise.Tree.match(3), "data must be an array, a list or a data frame"),
        (
            lambda: noise.Tree("ab", 1, 1),
            "^Tree needs one parent for each column, such .* got 'ab'$",
        ),
        (lambda: noise.Tree([], 1, 1), r"with -1 for none, got \[\]$"),
        (lambda: noise.Tree(3, 1, 1), "with -1 for none, got 3$"),
        (lambda: noise.Tree([-1, 2], 1, 1), r"whole numbers from -1 to 1, got \[-1, 2\]$"),
        (lambda: noise.Tree([-1, 0.0], 1, 1), r"whole numbers from -1 to 1, got \[-1, 0.0\]$"),
        (lambda: noise.Tree([1, 0], 1, 1), r"got \[1, 0\], in which columns are their own anc"),
        (lambda: noise.Tree([0], 1, 1), r"got \[0\], in which columns are their own ancestors"),
        (lambda: noise.Tree([-1], "a", 1), r"^Tree\(natural=...\) must be a number or an array"),
        (
            lambda: noise.Tree([-1, 0], NATURAL, COUPLING),
            r"natural of shape \(2, 2\) and coupling .* \(2, 2, 2\), got \(3, 2\) and \(3, 2, 2\)$",
        ),
        (
            lambda: noise.Tree([-1, 0, 0], 1e6 * NATURAL, 1e6 * COUPLING),
            r"up to 1e\+06 in every column, got .*e\+06: scale them down$",
        ),
        (lambda: noise.Tree([-1, 0, 0], NATURAL * math.nan, COUPLING), "finite .*, got nan: scale"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250

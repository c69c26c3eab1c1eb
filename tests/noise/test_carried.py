"""Points carried to a model that can't draw its own: moves that leave it as it is, and log Z."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import kstest, norm

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.models import Gaussian, Ising
from ncbayes.noise import Adaptive, Carried, Normal, StudentT, Tempering, Uniform, carried
from ncbayes.noise.carried import Leaps, Path, Walk, kernels
from ncbayes.noise.tempered import ZERO_WEIGHTS, Refused, effective_size, grows, log_mean
from ncbayes.spaces import Box, Orthant, Reals, Torus
from ncbayes.testing import check_noise

FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Slope:
    """``log f = theta . x`` on some space, by formulas: independent coordinates of known law.

    ``turn`` twists the derivative that moves go by, which must do no harm.
    """

    space: object
    turn: float = 1.0

    def evaluated(self, params, x):
        return params @ x.T

    def slopes(self, theta, x):
        return np.broadcast_to(self.turn * theta, x.shape)


THETA = np.array([-1.5, 0.7, -3.0])
BOX = Box([0.0, -1.0, 2.0], [1.0, 1.0, 5.0])


def on_box(size, rng):
    low, high = BOX.bounds
    u = rng.random((size, 3))
    return low + np.log1p(u * np.expm1(THETA * (high - low))) / THETA


def box_cdf(x, j):
    low, high = (bound[j] for bound in BOX.bounds)
    return np.expm1(THETA[j] * (x - low)) / np.expm1(THETA[j] * (high - low))


def positive(size, rng):
    return rng.exponential(1 / np.array([1.5, 3.0]), (size, 2))


CASES = {
    "box": (Slope(BOX), THETA, on_box, box_cdf),
    "box, by a wrong derivative": (Slope(BOX, -2.0), THETA, on_box, box_cdf),
    "positive": (
        Slope(Orthant(2)), np.array([-1.5, -3.0]), positive,
        lambda x, j: 1 - np.exp(-[1.5, 3.0][j] * x),
    ),
}  # fmt: skip


def moved_from_its_own(case, rng, kind=Leaps):
    model, theta, draw, cdf = CASES[case]
    points = draw(20_000, rng)
    moves = kind(model, theta, points) if kind is not Walk else Walk(model.space, points)

    def parts(x):
        return kernels(model, theta[None], x).T

    values, start = parts(points), points
    for _ in range(30):
        points, values = moves.moved(points, values, parts, np.ones(1), rng)
    assert (points != start).any(axis=1).mean() > 0.9
    assert np.allclose(values, parts(points))
    return min(kstest(points[:, j], lambda x, j=j: cdf(x, j)).pvalue for j in range(len(theta)))


@pytest.mark.parametrize("kind", [Leaps, Walk])
@pytest.mark.parametrize("case", CASES)
def test_moves_leave_the_model_as_it_is(case, kind, seed):
    assert moved_from_its_own(case, np.random.default_rng(seed), kind) > FALSE_ALARM


def test_walls_that_do_not_turn_the_speed_are_found_out(seed, monkeypatch):
    thrown = carried._thrown_back
    monkeypatch.setattr(carried, "_thrown_back", lambda x, low, high: (thrown(x, low, high)[0], 1))
    assert moved_from_its_own("box", np.random.default_rng(seed)) < FALSE_ALARM


def test_kicks_that_go_by_the_number_of_the_leap_are_found_out(seed):
    class Numbered(Leaps):  # what is not a function of the place can't be turned back
        kicks = 0

        def _kick(self, x, share):
            self.kicks += 1
            return super()._kick(x, share) * (1 + 3 * (self.kicks % (carried.LEAPS + 1) == 1))

    assert moved_from_its_own("box", np.random.default_rng(seed), Numbered) < FALSE_ALARM


def test_points_are_folded_into_walls_as_light_is():
    rng = np.random.default_rng(0)
    x, speed = rng.normal(0, 8, (2000, 3)), np.ones((2000, 3))
    low, high = BOX.bounds
    folded, signs = carried._thrown_back(x, low, high)
    for _ in range(100):
        below, above = x < low, x > high
        x = np.where(below, 2 * low - x, np.where(above, 2 * high - x, x))
        speed = np.where(below | above, -speed, speed)
    assert np.allclose(folded, x)
    assert np.array_equal(signs, speed)
    folded, signs = carried._thrown_back(np.array([[-2.0, 3.0]]), np.zeros(2), np.full(2, np.inf))
    assert folded.tolist() == [[2.0, 3.0]]
    assert signs.tolist() == [[-1.0, 1.0]]


def bent(params, x):
    return -params["a"] * x[:, 0] ** 2 - params["b"] * (
        0.3 * x[:, 0] * x[:, 1] ** 2 + 0.2 * x[:, 1] ** 4
    )


ENERGY = ncb.Energy(
    bent, {"a": ncb.energies.Positive(), "b": ncb.energies.Positive()}, ncb.spaces.Reals(2)
)
ROW = np.log([0.5, 1.2])


def log_mass(alpha, base):
    """``log integral base^(1 - alpha) f^alpha`` on a fine grid."""
    line = np.linspace(-15, 15, 1501)
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    log_f = ENERGY.evaluated(ROW[None], points)[0]
    total = (1 - alpha) * base.log_density(points) + alpha * log_f
    return float(np.logaddexp.reduce(total)) + 2 * math.log(line[1] - line[0])


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("steps", [5, 40])
def test_weights_estimate_the_normalizer(alpha, steps, seed):
    base = StudentT([0.0, 0.0], 2 * np.eye(2))
    _, path = Path(ENERGY, ROW, base).carried(alpha, steps, 4000, np.random.default_rng(seed))
    estimate, error = log_mean(path[-1])
    limit = norm.isf(FALSE_ALARM / 2)
    assert abs(estimate - log_mass(alpha, base)) < limit * error
    assert error < 0.05
    early, error = log_mean(path[steps // 2 - 1])
    assert abs(early - log_mass(alpha * (steps // 2) / steps, base)) < limit * max(error, 1e-3)


def test_more_steps_make_weights_more_even(seed):
    base, rng = Normal([0.0, 0.0], 9 * np.eye(2)), np.random.default_rng(seed)
    paths = [Path(ENERGY, ROW, base).carried(1.0, k, 2000, rng)[1] for k in (4, 64)]
    shares = [effective_size(path[-1]) / 2000 for path in paths]
    assert shares[0] + 0.2 < shares[1]


@pytest.mark.parametrize("base", [StudentT([0.0, 0.0], 2 * np.eye(2)), Normal([0.5, 0], np.eye(2))])
def test_carried_noise_is_noise(base, seed):
    alpha = 0.8
    at = Tempering(ROW, alpha, log_mass(alpha, base), 0.0, 1.0, 40)
    check_noise(Carried(ENERGY, base, at), ENERGY.space, seed=seed)
    assert repr(Carried(ENERGY, base, at)) == "Carried(Energy(a, b; Reals(dimension=2)), alpha=0.8)"
    wrong = Tempering(ROW, alpha, at.log_z + 0.1, 0.0, 1.0, 40)
    with pytest.raises(AssertionError):
        check_noise(Carried(ENERGY, base, wrong), ENERGY.space, seed=seed)


def test_noise_that_is_not_carried_all_the_way_is_found_out(seed, monkeypatch):
    base = StudentT([0.0, 0.0], 2 * np.eye(2))
    at = Tempering(ROW, 0.8, log_mass(0.8, base), 0.0, 1.0, 40)
    carry = Path.carried
    monkeypatch.setattr(Path, "carried", lambda self, alpha, *rest: carry(self, alpha / 2, *rest))
    monkeypatch.setattr(Path, "settled", lambda self, points, *rest, **more: points)
    with pytest.raises(AssertionError):
        check_noise(Carried(ENERGY, base, at), ENERGY.space, seed=seed)


def test_families_without_derivatives_walk_and_angles_turn(seed):
    rng = np.random.default_rng(seed)
    model = Gaussian(2)
    theta = np.array([0.5, 0.5, 1.0, 1.5, 0.4])
    base = Normal([0.0, 0.0], 4 * np.eye(2))
    _, path = Path(model, theta, base).carried(1.0, 40, 4000, rng)
    estimate, error = log_mean(path[-1])
    assert abs(estimate - model.log_partition(theta)) < norm.isf(FALSE_ALARM / 2) * error
    circle = ncb.Energy(angle, {"kappa": ncb.energies.Real(ncb.priors.Normal(2.0))}, Torus(1))
    base = Uniform(Torus(1))
    points, path = Path(circle, np.array([2.0]), base).carried(1.0, 20, 4000, rng)
    estimate, error = log_mean(path[-1])
    exact = math.log(2 * math.pi * np.i0(2.0))
    assert abs(estimate - exact) < norm.isf(FALSE_ALARM / 2) * error
    assert points.min() >= 0
    assert points.max() < 2 * math.pi


def angle(params, x):
    jnp = pytest.importorskip("jax.numpy")
    return params["kappa"] * jnp.cos(x[:, 0])


def test_on_discrete_spaces_points_stay_where_they_are(seed):
    model, theta = Ising(4), np.full(10, 0.2)
    base = Uniform(model.space)
    points, path = Path(model, theta, base).carried(1.0, 3, 8000, np.random.default_rng(seed))
    estimate, error = log_mean(path[-1])
    assert abs(estimate - model.log_partition(theta)) < norm.isf(FALSE_ALARM / 2) * error
    assert np.array_equal(Path(model, theta, base).settled(points, 1.0, None, points), points)


def test_no_points_of_no_points():
    base = Normal([0.0, 0.0], np.eye(2))
    at = Tempering(ROW, 0.5, 0.0, 0.0, 1.0, 5)
    assert Carried(ENERGY, base, at).sample(0, np.random.default_rng(0)).shape == (0, 2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_points_are_points_of_the_same_noise(size, seed):
    """Each of 300 samples is carried by itself; together they are the model on the box."""
    alpha, base = 1.0, Uniform(BOX)
    at = Tempering(THETA, alpha, 0.0, 0.0, 1.0, 20)
    rng = np.random.default_rng(seed)
    points = np.concatenate(
        [Carried(Slope(BOX), base, at).sample(size, rng)[:1] for _ in range(300)]
    )
    assert kstest(points[:, 0], lambda x: box_cdf(x, 0)).pvalue > FALSE_ALARM
    assert kstest(points[:, 2], lambda x: box_cdf(x, 2)).pvalue > FALSE_ALARM
    uniform = base.sample(300, rng)
    assert kstest(uniform[:, 2], lambda x: box_cdf(x, 2)).pvalue < FALSE_ALARM


@pytest.mark.parametrize("points", [np.zeros((1, 3)), np.ones((2, 2)), np.arange(4.0)[:, None]])
def test_steps_have_a_shape_for_few_points(points):
    root = carried._root(points)
    assert np.all(np.isfinite(root))
    assert np.all(np.diag(root) > 0)


def test_densities_end_where_base_or_space_do():
    at = Tempering(THETA, 0.5, 0.0, 0.0, 1.0, 5)
    noise = Carried(Slope(BOX), Normal(np.zeros(3), np.eye(3)), at)
    outside = np.array([[2.0, 0.0, 3.0], [0.5, 0.0, 3.0]])
    assert noise.log_density(outside)[0] == -np.inf
    assert np.isfinite(noise.log_density(outside)[1])
    narrow = Carried(Slope(Reals(3)), Uniform(BOX), at)
    assert narrow.log_density(outside)[0] == -np.inf


class Bell:
    """A normal density, with its slopes."""

    space = Reals(1)

    def evaluated(self, params, x):
        return -params @ x.T**2 / 2

    def slopes(self, theta, x):
        return -theta * x


@pytest.mark.parametrize("size", [2, 5, 500])
def test_few_points_settle_without_drawing_together(size, seed):
    """Exact draws of ``N(0, 1)^(1/2) f^(1/2)``, f normal too: moved, they still are;

    in steps of their own shape they are not."""
    rng = np.random.default_rng(seed)
    like = rng.standard_normal((500, 1))
    path = Path(Bell(), np.ones(1), Normal([0.0], [[1.0]]))

    def settled(itself):
        starts = [rng.standard_normal((size, 1)) for _ in range(3000 // size)]
        ends = [path.settled(x, 0.5, rng, like=x if itself else like) for x in starts]
        return np.concatenate(ends)[:, 0]

    assert kstest(settled(itself=False), norm.cdf).pvalue > FALSE_ALARM
    if size == 2:
        assert settled(itself=True).std() < 0.95


def test_a_base_that_misses_the_model_is_told():
    model, settings = Slope(BOX), Adaptive(method="carried", alpha=0.5)
    beside = Uniform(Box([5.0, 5.0, 9.0], [6.0, 6.0, 9.5]))
    found = settings.temper(model, THETA, beside, 100, np.random.default_rng(1))
    assert isinstance(found, Refused)
    assert found.reason == ZERO_WEIGHTS


def test_points_are_not_carried_on_discrete_spaces():
    with pytest.raises(InputError, match=r'^Adaptive\(method="carried"\) moves points, which can'):
        Adaptive(method="carried").temper(
            Ising(3), np.zeros(6), Uniform(Ising(3).space), 10, np.random.default_rng(0)
        )


def test_alpha_0_is_the_base_everywhere():
    base, at = Normal(np.zeros(2), np.eye(2)), Tempering(np.zeros(2), 0.0, 0.0, 0.0, 1.0, 5)
    x = np.array([[-1.0, 2.0], [1.0, 1.0]])
    noise = Carried(Slope(Orthant(2)), base, at)
    np.testing.assert_array_equal(noise.log_density(x), base.log_density(x))


FALLING = {
    "a line": (Reals(1), lambda x: -1.9 * np.sqrt(1 + 1.2 * x[:, 0] ** 2), Normal([0.3], [[2.0]])),
    "positive": (Orthant(1), lambda x: -(x[:, 0] ** 0.5), ncb.noise.Gamma([1.5], [1.0])),
    "a plane": (Reals(2), lambda x: -(x**2).sum(axis=1), Normal([0.0, 1.0], np.eye(2))),
    "a bounded base": (Reals(2), lambda x: -(x**2).sum(axis=1), Uniform(Box([-1, -1], [1, 1]))),
}


@pytest.mark.parametrize("case", FALLING)
def test_densities_that_fall_do_not_grow(case, seed):
    space, log_model, base = FALLING[case]
    for k in range(40):
        rng = np.random.default_rng([seed, k])
        assert not grows(space, base, 0.9, log_model, rng)
        if case != "a bounded base":  # beyond it there is nothing to grow
            assert grows(space, base, 0.9, lambda x: 5 * np.abs(x).sum(axis=1) ** 2, rng)

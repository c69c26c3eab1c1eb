"""Tempered noise: its density by plain formulas, its draws, weights and normalizers."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import logsumexp, ndtri
from scipy.stats import chi2

from ncbayes import noise
from ncbayes.base import InputError
from ncbayes.models import Exponential, Gaussian, Ising, TorusGraph, VonMises
from ncbayes.noise import tempered
from ncbayes.noise.tempered import (
    Annealed,
    Resampled,
    Tempering,
    anneal,
    effective_size,
    log_mean,
    log_tilt,
    systematic,
)
from ncbayes.spaces import Binary, Torus
from ncbayes.testing import check_noise

FALSE_ALARM = 1e-6
ALPHA = 0.6
STUDENT = noise.StudentT(0.3, 2.0)
CHAIN = np.array([0.4, -0.2, 0.3, 0.5, 0.8, -0.6, 0.5, 0.4])
SPINS = np.array([-0.4, 0.3, 0.2, -0.6, 0.9, -0.7, 0.5, 0.4, -0.3, 0.8])


def tempering(theta, log_z, alpha=ALPHA, work=10):
    return Tempering(np.asarray(theta, dtype=float), alpha, log_z, 0.0, 1.0, work)


def grid_log_z(model, theta, base, low, high, points=400_001):
    """``log integral base^(1 - alpha) model^alpha`` by the trapezoid rule."""
    x = np.linspace(low, high, points)[:, None]
    log_model = model.statistics(x) @ theta + model.log_base(x)
    log_q = (1 - ALPHA) * base.log_density(x) + ALPHA * log_model
    return float(logsumexp(log_q)) + math.log((high - low) / (points - 1))


def from_uniform(model, theta):
    space = model.space
    log_z = model.log_partition(ALPHA * np.asarray(theta)) - (1 - ALPHA) * space.log_volume
    return Resampled(model, noise.Uniform(space), tempering(theta, log_z))


def gaussian(base):
    model, theta = Gaussian(1), np.array([1.0, 2.0])
    log_z = grid_log_z(model, theta, base, -200.0, 200.0)
    return Resampled(model, base, tempering(theta, log_z))


def exponential():
    """The base goes beyond the model's space, where the noise has no density."""
    model, theta, base = Exponential(), np.array([1.5]), noise.Normal(0.3, 1.0)
    log_z = grid_log_z(model, theta, base, 0.0, 60.0)
    return Resampled(model, base, tempering(theta, log_z))


def annealed(model, theta):
    return Annealed(model, tempering(theta, model.log_partition(ALPHA * np.asarray(theta))))


MADE = {
    "von Mises from uniform": lambda: from_uniform(VonMises(), [1.5, -1.0]),
    "torus graph from uniform": lambda: from_uniform(TorusGraph(2), CHAIN),
    "Ising from uniform": lambda: from_uniform(Ising(4), SPINS),
    "Gaussian from StudentT": lambda: gaussian(STUDENT),
    "Gaussian from a wide Normal": lambda: gaussian(noise.Normal(-0.5, 4.0)),
    "exponential from Normal": exponential,
    "torus graph annealed": lambda: annealed(TorusGraph(2), CHAIN),
    "Ising annealed": lambda: annealed(Ising(4), SPINS),
}
EVERY = pytest.mark.parametrize("made", MADE.values(), ids=MADE)


@EVERY
def test_the_density_is_the_formula(made, seed):
    made, rng = made(), np.random.default_rng(seed)
    model, how = made.model, made.tempering
    base = getattr(made, "base", None)
    x = made.sample(20, rng)
    for point, value in zip(x, made.log_density(x), strict=True):
        one = point[None]
        log_model = sum(t * s for t, s in zip(how.theta, model.statistics(one)[0], strict=True))
        log_model = how.alpha * (log_model + model.log_base(one)[0])
        log_base = 0.0 if base is None else (1 - how.alpha) * base.log_density(one)[0]
        assert value == pytest.approx(log_base + log_model - how.log_z, rel=1e-12, abs=1e-12)
    assert made.dimension == model.space.dimension


@EVERY
def test_draws_follow_the_density(made, seed):
    made = made()
    check_noise(made, made.model.space, seed=seed)


@EVERY
def test_a_wrong_normalizer_is_seen(made, seed):
    made = made()
    wrong = dataclasses.replace(made.tempering, log_z=made.tempering.log_z + 0.2)
    with pytest.raises(AssertionError, match=r"not normalized: it integrates to 0\.8"):
        check_noise(dataclasses.replace(made, tempering=wrong), made.model.space, seed=seed)


@EVERY
def test_draws_at_another_alpha_are_seen(made, seed):
    made = made()
    other = dataclasses.replace(made.tempering, alpha=ALPHA / 3)

    class Mixed:
        log_density = made.log_density
        sample = dataclasses.replace(made, tempering=other).sample

    with pytest.raises(AssertionError, match="do not follow its log_density"):
        check_noise(Mixed(), made.model.space, seed=seed)


def test_there_is_no_density_outside_the_space_or_the_base():
    x = np.array([[-0.5], [0.5]])
    assert np.isneginf(exponential().log_density(x)).tolist() == [True, False]
    narrow = Resampled(Gaussian(1), noise.Gamma(2.0, 1.0), tempering([0.0, 1.0], 0.0))
    assert np.isneginf(narrow.log_density(x)).tolist() == [True, False]


@pytest.mark.parametrize("made", [MADE["Gaussian from StudentT"], MADE["Ising annealed"]])
def test_the_ends_of_alpha(made, seed):
    made = made()
    x = made.sample(9, np.random.default_rng(seed))
    at = {a: dataclasses.replace(made, tempering=tempering(made.tempering.theta, 0.0, a))
          for a in (0.0, 1.0)}  # fmt: skip
    start = made.base.log_density(x) if isinstance(made, Resampled) else np.zeros(9)
    assert at[0.0].log_density(x) == pytest.approx(start)
    wanted = made.model.statistics(x) @ made.tempering.theta + made.model.log_base(x)
    assert at[1.0].log_density(x) == pytest.approx(wanted)


@pytest.mark.parametrize("model", [TorusGraph(3), Ising(5), Gaussian(2)], ids=repr)
def test_the_exponent_in_slices_is_that_of_the_matrix(model, seed, monkeypatch):
    monkeypatch.setattr(tempered, "MOST_ENTRIES", 40)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(33, 2)) if isinstance(model, Gaussian) else model.space.uniform(33, rng)
    theta = rng.normal(size=model.statistics(x).shape[1])
    assert tempered.exponent(model, theta, x) == pytest.approx(model.statistics(x) @ theta)
    assert tempered.exponent(model, theta, x[:0]).shape == (0,)


def test_the_tilt_is_the_log_ratio(seed):
    x = np.random.default_rng(seed).normal(size=(5, 1))
    theta = np.array([1.0, 2.0])
    wanted = Gaussian(1).statistics(x) @ theta - STUDENT.log_density(x)
    wanted += Gaussian(1).log_base(x)
    assert log_tilt(Gaussian(1), theta, STUDENT, x) == pytest.approx(wanted)


WEIGHTS = {
    "equal": np.zeros(50),
    "spread": np.random.default_rng(0).normal(size=50),
    "one heavy": np.r_[5.0, np.zeros(49)],
    "some without weight": np.r_[np.full(25, -np.inf), np.linspace(0, 2, 25)],
}
SHIFTS = pytest.mark.parametrize("shift", [0.0, 1e5, -1e5])
WEIGHTED = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)


@SHIFTS
@WEIGHTED
def test_log_mean_and_effective_size_are_the_formulas(weights, shift):
    plain = np.exp(weights)
    log_z, error = log_mean(weights + shift)
    assert log_z == pytest.approx(math.log(plain.mean()) + shift, rel=1e-12, abs=1e-12)
    assert error == pytest.approx(plain.std() / plain.mean() / math.sqrt(50), abs=1e-7)
    ess = plain.sum() ** 2 / (plain**2).sum()
    assert effective_size(weights + shift) == pytest.approx(ess, rel=1e-9)


def test_weights_beyond_all_floats():
    weights = np.array([1e5, 0.0, -1e5, -np.inf])
    assert log_mean(weights) == (pytest.approx(1e5 - math.log(4)), pytest.approx(math.sqrt(3 / 4)))
    assert effective_size(weights) == 1
    assert systematic(weights, 7, np.random.default_rng(0)).tolist() == [0] * 7


def test_no_weight_at_all_is_no_normalizer(seed):
    """The guard refuses it because log Z is not finite."""
    weights = np.full(8, -np.inf)
    assert log_mean(weights)[0] == -np.inf
    chosen = systematic(weights, 5, np.random.default_rng(seed))
    assert ((chosen >= 0) & (chosen < 8)).all()
    assert not noise.Adaptive()._passes(weights, 1)


def counts_are_rounded(choose, weights, size, rng):
    """Each index as often as expected, rounded up or down, in 200 trials."""
    expected = size * np.exp(weights) / np.exp(weights).sum()
    for _ in range(200):
        counts = np.bincount(choose(weights, size, rng), minlength=len(weights))
        fine = (counts >= np.floor(expected - 1e-9)) & (counts <= np.ceil(expected + 1e-9))
        if counts.sum() != size or not fine.all():
            return False
    return True


def independent(weights, size, rng):
    return rng.choice(len(weights), size, p=np.exp(weights) / np.exp(weights).sum())


@WEIGHTED
@pytest.mark.parametrize("size", [1, 7, 50, 500])
def test_systematic_rounds_expected_counts(weights, size, seed):
    assert counts_are_rounded(systematic, weights, size, np.random.default_rng(seed))


def test_independent_choices_do_not_round_counts(seed):
    assert not counts_are_rounded(independent, WEIGHTS["spread"], 50, np.random.default_rng(seed))


@dataclasses.dataclass
class Told:
    """A generator that is told its random number."""

    value: float

    def random(self):
        return self.value


@WEIGHTED
def test_systematic_counts_are_right_on_average(weights):
    """Over all of its random numbers, here 1000 of them in order."""
    rngs = [Told((k + 0.5) / 1000) for k in range(1000)]
    total = sum(np.bincount(systematic(weights, 20, rng), minlength=50) for rng in rngs)
    expected = 20 * np.exp(weights) / np.exp(weights).sum()
    np.testing.assert_allclose(total / 1000, expected, atol=2e-3)


def anneal_late(model, theta, steps, size, rng):
    """Broken: weighs the points after their sweep, when they have already moved to the target."""
    points = model.space.uniform(size, rng)
    weight = model.space.log_volume + np.ravel(model.log_base(points))
    path = np.empty((steps, size))
    for k in range(1, steps + 1):
        points = model.sweep(theta * (k / steps), points, rng)
        weight = weight + tempered.exponent(model, theta, points) / steps
        path[k - 1] = weight
    return points, path


def anneal_short(model, theta, steps, size, rng):
    """Broken: forgets the second increment."""
    points, path = anneal(model, theta, steps, size, rng)
    path[1:] -= path[1] - path[0]
    return points, path


def small_models(seed):
    """Ten torus graphs and ten Ising models with a random theta."""
    rng = np.random.default_rng([seed, 20])
    for k in range(10):
        for model in (TorusGraph(2 + k % 2), Ising(3 + k % 4)):
            count = sum(map(len, model.groups.values()))
            yield model, rng.normal(scale=0.7, size=count), rng


def normalizer_scores(run, seed, size=4000):
    """Errors of log Z in standard errors, for each of the twenty models."""
    found = []
    for model, theta, rng in small_models(seed):
        log_z, error = log_mean(run(model, ALPHA * theta, 10, size, rng)[1][-1])
        found.append((log_z - model.log_partition(ALPHA * theta)) / error)
    return np.array(found)


def are_standard_normal(scores):
    """Every one within what 20 tests at a rate of 1e-6 allow, and the sum of their squares too."""
    low, high = chi2.ppf([FALSE_ALARM / 4, 1 - FALSE_ALARM / 4], len(scores))
    limit = -ndtri(FALSE_ALARM / 4 / len(scores))
    return bool(np.abs(scores).max() < limit and low < np.sum(scores**2) < high)


def test_annealed_normalizers_are_right_within_their_errors(seed, record_property):
    scores = normalizer_scores(anneal, seed)
    within = int(np.sum(np.abs(scores) < 3))
    record_property("within_3_standard_errors", within)
    print(f"log Z within 3 standard errors: {within} of 20, largest {np.abs(scores).max():.2f}, "
          f"sum of squares {np.sum(scores**2):.1f}")  # fmt: skip
    assert are_standard_normal(scores)


@pytest.mark.parametrize("broken", [anneal_late, anneal_short])
def test_broken_annealing_is_seen(broken, seed):
    assert not are_standard_normal(normalizer_scores(broken, seed))


def test_errors_that_are_too_small_are_seen(seed):
    assert not are_standard_normal(3 * normalizer_scores(anneal, seed))


@pytest.mark.parametrize("model", [TorusGraph(3), Ising(5)], ids=repr)
@pytest.mark.parametrize("broken", [None, anneal_late, anneal_short])
def test_every_step_of_the_path_weighs_without_bias(model, broken, seed):
    rng = np.random.default_rng([seed, 5])
    theta = rng.normal(scale=0.6, size=sum(map(len, model.groups.values())))
    _, path = (broken or anneal)(model, theta, 12, 20_000, rng)
    exact = [model.log_partition(theta * k / 12) for k in range(1, 13)]
    ratios = np.exp(path - np.array(exact)[:, None]) - 1
    scores = ratios.mean(axis=1) / ratios.std(axis=1) * math.sqrt(20_000)
    fine = np.abs(scores).max() < -ndtri(FALSE_ALARM / 2 / 12)
    assert fine == (broken is None)


@pytest.mark.parametrize("share", [1.0, 0.7], ids=["right", "stopped early"])
def test_annealed_points_follow_the_model(share, seed):
    """Weighted, their mean statistics are those of the model, the gradient of log Z."""
    model, theta = Ising(4), SPINS
    points, path = anneal(model, share * theta, 10, 20_000, np.random.default_rng(seed))
    step = 1e-5 * np.eye(len(theta))
    wanted = np.array(
        [(model.log_partition(theta + e) - model.log_partition(theta - e)) / 2e-5 for e in step]
    )
    weights = np.exp(path[-1] - path[-1].max())
    errors = weights[:, None] * (model.statistics(points) - wanted)
    scores = errors.mean(axis=0) / errors.std(axis=0) * math.sqrt(20_000)
    fine = np.abs(scores).max() < -ndtri(FALSE_ALARM / 2 / len(theta))
    assert fine == (share == 1.0)


def random_graph(nodes):
    """The paper's: a tenth of the pairs coupled by 0.3 in cosine and sine."""
    model = TorusGraph(nodes, marginal=False, reflectional=False)
    linked = np.random.default_rng(0).random(nodes * (nodes - 1) // 2) < 0.1
    return model, np.repeat(np.where(linked, 0.3, 0.0), 2)


def test_annealing_keeps_its_points_in_thirty_dimensions(seed, record_property):
    model, theta = random_graph(30)
    made = noise.Adaptive(alpha=0.5).temper(model, theta, None, 800, np.random.default_rng(seed))
    record_property("effective_share", made.effective)
    print(f"effective share at d = 30, alpha = 0.5: {made.effective:.3f}")
    assert (made.alpha, made.work) == (0.5, 10)
    assert made.effective >= 0.8
    assert made.log_z_error < 0.05
    # Importance resampling from the uniform comes nowhere near.
    proposals = model.space.uniform(8000, np.random.default_rng(seed))
    tilt = log_tilt(model, theta, noise.Uniform(model.space), proposals)
    assert effective_size(0.5 * tilt) < 0.5 * 8000 * 0.8


def test_no_points_are_no_points():
    annealed = noise.Annealed(Ising(2), noise.Tempering(np.zeros(3), 0.5, 0.0, 0.0, 1.0, 4))
    assert annealed.sample(0, np.random.default_rng(1)).shape == (0, 2)
    mixed = noise.Mixture([annealed, noise.Uniform(Binary(2))], [0.01, 0.99])
    assert mixed.sample(3, np.random.default_rng(1)).shape == (3, 2)


@pytest.mark.parametrize(
    ("precision", "refused"), [(1.0, False), (0.01, False), (-0.1, True), (-5.0, True)]
)
def test_a_model_that_grows_outward_makes_no_noise(precision, refused):
    """An average of draws can hold a precision that is not positive: no distribution at all."""
    model, base = Gaussian(1), noise.StudentT(0.0, 1.0)
    rng, theta = np.random.default_rng(1), np.array([0.1, precision])
    settings = noise.Adaptive(alpha=0.5, least_effective=0.0, largest_error=10.0)
    made = settings.temper(model, theta, base, 100, rng)
    assert (getattr(made, "reason", "") == "grows") == refused


@pytest.mark.parametrize(
    ("swept", "words"),
    [
        (lambda x: x[1:], r"must return an array of shape \(20, 2\) like x, got \(19, 2\)"),
        (lambda x: None, r"must return an array of shape \(20, 2\) like x, got None"),
        (lambda x: x - np.pi, r"must return points of Torus.*outside; angles must lie from 0"),
    ],
    ids=["shape", "nothing", "unwrapped"],
)
def test_what_a_sweep_must_return(swept, words):
    class Careless:
        space, groups = Torus(2), {"a": ("b",)}

        def statistics(self, x):
            return np.cos(x[:, :1])

        def log_base(self, x):
            return np.zeros(len(x))

        def sweep(self, theta, x, rng):
            return swept(x)

    with pytest.raises(InputError, match=words):
        anneal(Careless(), np.zeros(1), 3, 20, np.random.default_rng(1))

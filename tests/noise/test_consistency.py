"""The door for noise: wrong noise is refused in one sentence, right noise never."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

import ncbayes as ncb
from ncbayes import inputs, noise
from ncbayes.noise import consistency
from ncbayes.noise.consistency import complaint
from ncbayes.spaces import Binary, Box, Orthant, Reals, Region, Torus
from ncbayes.testing import check_noise

DRAWS = inputs.CHECKED_DRAWS
PLANE = np.array([[2.0, 0.6], [0.6, 1.0]])
CORNER = Region.of([[0.0, 0.0], [3.0, 1.0], [0.0, 5.0]])
WIDE = Region.of([[-300.0, -300.0], [300.0, -300.0], [0.0, 300.0]])


class LogNormal:
    """A user's: its density takes a logarithm, and is never meant for numbers below 0."""

    def sample(self, size, rng):
        return np.exp(rng.normal(size=(size, 1)))

    def log_density(self, x):
        log = np.log(x[:, 0])
        return -(log**2) / 2 - log - np.log(2 * np.pi) / 2


RIGHT = {
    "Normal": (noise.Normal([0.0, 3.0], PLANE), Reals(2)),
    "StudentT": (noise.StudentT(1.0, 2.0, df=1.5), Reals(1)),
    "Uniform": (noise.Uniform(Torus(2)), Torus(2)),
    "Gamma": (noise.Gamma([2.0, 0.5], [1.0, 3.0]), Orthant(2)),
    "LogNormal": (LogNormal(), Orthant(1)),
    "Bernoulli": (noise.Bernoulli([0.1, 0.5, 0.8]), Binary(3)),
    "VonMises": (noise.VonMises(1.0, 5.0), Torus(1)),
    "Uniform box": (noise.Uniform(Box([0.0, 1.0], [1.0, 5.0])), Box([0.0, 1.0], [1.0, 5.0])),
    "Uniform region": (noise.Uniform(CORNER), CORNER),
    "Restricted": (noise.Restricted.to(noise.Normal([0.0, 3.0], PLANE), CORNER), CORNER),
    "narrow in a region": (noise.Restricted.to(noise.Normal([0, 0], PLANE), WIDE), WIDE),
    "far and narrow": (noise.Normal(1e6, 1e-4), Reals(1)),
}


def said(made, space, seed, draws=DRAWS):
    rng = np.random.default_rng(seed)
    return complaint(made, space, made.sample(draws, rng), rng)


@pytest.mark.parametrize(("made", "space"), RIGHT.values(), ids=RIGHT)
def test_right_noise_is_not_refused(made, space, seed):
    assert [said(made, space, [seed, k]) for k in range(20)] == [""] * 20


class Changed:
    """Noise whose draws or density were tampered with."""

    def __init__(self, made, draws=lambda x: x, density=lambda x, log_q: log_q):
        self.made, self.draws, self.density = made, draws, density

    def sample(self, size, rng):
        return self.draws(self.made.sample(size, rng))

    def log_density(self, x):
        return self.density(x, self.made.log_density(x))


NORMAL, CHANGES = RIGHT["Normal"][0], "draws points that do not follow its log_density: the resid"
WRONG = {
    "twice the density": (
        Changed(NORMAL, density=lambda x, log_q: log_q + np.log(2)),
        Reals(2),
        "has a density that is not normalized: it integrates to ",
    ),
    "without its constant": (
        Changed(NORMAL, density=lambda x, log_q: log_q + 2.1),
        Reals(2),
        "has a density that is not normalized: it integrates to ",
    ),
    "draws that are too wide": (Changed(NORMAL, lambda x: 1.3 * x), Reals(2), CHANGES),
    "draws that are moved": (Changed(NORMAL, lambda x: x + 0.3), Reals(2), CHANGES),
    "draws that do not go together": (
        Changed(NORMAL, lambda x: np.column_stack([x[:, 0], np.roll(x[:, 1], 1)])),
        Reals(2),
        CHANGES,
    ),
    "tails": (Changed(RIGHT["StudentT"][0], lambda x: np.clip(x, -1, 3)), Reals(1), CHANGES),
    "an angle less": (
        Changed(noise.Uniform(Torus(2)), lambda x: 0.75 * x), Torus(2), CHANGES
    ),
    "another rate": (Changed(noise.Gamma(2.0, 1.0), lambda x: 1.3 * x), Orthant(1), CHANGES),
    "zeros for ones": (Changed(noise.Bernoulli([0.3, 0.5]), lambda x: 1 - x), Binary(2), CHANGES),
    "no density at draws": (
        Changed(NORMAL, density=lambda x, log_q: np.where(x[:, 0] > 1, -np.inf, log_q)),
        Reals(2),
        "has no finite log density at ",
    ),
    "NaN": (
        Changed(NORMAL, density=lambda x, log_q: np.where(np.abs(x[:, 0]) > 30, np.nan, log_q)),
        Reals(2),
        "has a log_density that is NaN somewhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "space", "words"), WRONG.values(), ids=WRONG)
def test_wrong_noise_is_named(made, space, words, seed):
    for k in range(5):
        assert said(made, space, [seed, k]).startswith(words)


def test_an_integral_is_told(seed):
    text = said(WRONG["twice the density"][0], Reals(2), seed)
    assert float(text.split()[-1]) == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("factor", [1.0, 1.5], ids=["right", "off by a half"])
def test_false_alarms_are_as_rare_as_they_are_said_to_be(factor, seed, monkeypatch):
    """Two families of tests at a rate of 1/20 each: 300 trials give no more than chance does."""
    monkeypatch.setattr(consistency, "FALSE_ALARM", 0.05)
    made = Changed(NORMAL, density=lambda x, log_q: log_q + np.log(factor))
    alarms = sum(said(made, Reals(2), [seed, k], 1000) != "" for k in range(300))
    limit = binom.isf(1e-6, 300, 0.1)
    assert (alarms <= limit) == (factor == 1.0)


def test_a_density_is_not_asked_for_outside_the_space(seed):
    """Where there are no draws there either."""

    class Strict(LogNormal):
        def log_density(self, x):
            assert (x >= 0).all()
            return super().log_density(x)

    assert said(Strict(), Orthant(1), seed) == ""
    check_noise(Strict(), Orthant(1), seed=seed)


GAUSSIAN, EXPONENTIAL = ncb.models.Gaussian(1), ncb.models.Exponential()
X = np.random.default_rng(0).normal(size=(40, 1))
OPTIONS = {"draws": 10, "tune": 5, "chains": 1, "cores": 1, "progress": False}


def fit(model=GAUSSIAN, data=X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, **{**OPTIONS, **options})


UNIT = noise.Normal(0.0, 1.0)
REFUSED = {
    "not normalized": (
        Changed(UNIT, density=lambda x, log_q: log_q + np.log(2)),
        r"^the noise Changed has a density that is not normalized: it integrates to \d\.?\d*; "
        r"sample and log_density must be those of one distribution",
    ),
    "other draws": (
        Changed(UNIT, lambda x: 1.3 * x),
        r"^the noise Changed draws points that do not follow its log_density: the residual times "
        r"x1\^2 is off by -?\d+\.\d standard errors \(limit 5\.\d\); sample and log_density",
    ),
    "no density at the data": (
        noise.Uniform(Box([-0.5], [0.5])),
        r"^the noise Uniform\(.*\) has log density -inf at \d+ of 40 points of the data \(first at "
        r"row \d+: .*\); noise must have positive density wherever there are data: choose a wider",
    ),
    "wrong dimension": (
        noise.Normal([0.0, 0.0], PLANE),
        r"^Normal.sample must return 200 points of dimension 1 like the data, got shape \(200, 2\)",
    ),
    "densities of a wrong shape": (
        Changed(UNIT, density=lambda x, log_q: log_q[:, None]),
        r"^Changed.log_density must return one number a point, shape \(200,\), got shape \(200, 1",
    ),
}


@pytest.mark.parametrize("wrap", [lambda n: n, noise.Fixed, noise.Fresh, noise.Pooled,
                                  noise.Adaptive], ids=["alone", "fixed", "fresh", "pooled",
                                                        "adaptive"])  # fmt: skip
@pytest.mark.parametrize(("made", "message"), REFUSED.values(), ids=REFUSED)
def test_fits_refuse_wrong_noise_in_one_sentence(made, message, wrap, seed):
    with pytest.raises(ncb.InputError, match=message) as raised:
        fit(noise=wrap(made), seed=seed)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_the_group_s_own_noise_is_refused():
    by_group = {"one": UNIT, "two": REFUSED["other draws"][0]}
    with pytest.raises(ncb.InputError, match="draws points that do not follow its log_density"):
        fit(data={"one": X[:20], "two": X[20:]}, noise=by_group, seed=1)


FITTED = {
    "Normal": (GAUSSIAN, X, noise.Normal(0.2, 2.0)),
    "StudentT": (GAUSSIAN, X, noise.StudentT(0.0, 1.0, df=1.5)),
    "Uniform": (ncb.models.VonMises(), np.abs(X), noise.Uniform(Torus(1))),
    "Gamma": (EXPONENTIAL, np.abs(X), noise.Gamma(1.0, 1.0)),
    "LogNormal": (EXPONENTIAL, np.abs(X), LogNormal()),
}


@pytest.mark.parametrize(("model", "data", "made"), FITTED.values(), ids=FITTED)
def test_fits_take_right_noise(model, data, made, seed):
    for k in range(20):
        fit(model, data, noise=made, seed=100 * seed + k, draws=1, tune=0)


def test_noise_beyond_the_space_is_taken(seed):
    """Its points outside are noise for certain, and count."""
    posterior = fit(EXPONENTIAL, np.abs(X), noise=noise.Normal(0.5, 1.0), seed=seed)
    outside = posterior.data["noise"]["points"].to_numpy()[:, 0] < 0
    assert outside.any()
    assert np.isneginf(posterior.data["noise"]["log_odds"].to_numpy()[outside]).all()


def test_the_check_leaves_the_draws_alone(monkeypatch):
    """It has random numbers of its own."""
    checked = fit(noise=UNIT, seed=1)
    monkeypatch.setattr(ncb.inputs, "check_consistency", lambda *_: None)
    assert np.array_equal(fit(noise=UNIT, seed=1).theta, checked.theta)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (Changed(noise.Normal(0.0, 4.0), draws=lambda x: 1.3 * x), "do not follow its log_density"),
        (noise.Normal([0.0, 0.0], np.eye(2)), "must return points of dimension 1 like the data"),
    ],
    ids=["draws", "dimension"],
)
def test_the_base_of_adaptive_noise_comes_through_the_same_door(base, words, seed):
    data = np.random.default_rng(seed).normal(size=(50, 1))
    with pytest.raises(ncb.InputError, match=words):
        ncb.fit(ncb.models.Gaussian(1), data, noise=noise.Adaptive(base=base), seed=seed)


def test_dependence_that_is_too_strong_is_seen(seed):
    """No column and no two neighbours differ, for the middle one is independent of the others."""
    rng = np.random.default_rng(seed)

    def with_correlation(r):
        return noise.Normal(np.zeros(3), [[1.0, 0.0, r], [0.0, 1.0, 0.0], [r, 0.0, 1.0]])

    told = with_correlation(0.5)
    assert not complaint(told, Reals(3), told.sample(DRAWS, rng), rng)
    draws = with_correlation(0.9).sample(DRAWS, rng)
    assert "residual times the log ratio is off" in complaint(told, Reals(3), draws, rng)

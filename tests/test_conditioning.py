"""Centre and scale: a fit must not depend on the units and the origin of the data."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import models, noise, priors
from ncbayes.conditioning import data_mean, weak_normal
from ncbayes.contrast import contrast
from ncbayes.problem import noise_set
from ncbayes.spaces import Box, Reals

pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
X = np.random.default_rng(0).normal(size=(200, 1))
GAUSSIAN = models.Gaussian(1)
# Origin and unit: y = unit (x + origin).
UNITS = [(0.0, 1e3), (0.0, 1e-3), (3.0, 1.0), (100.0, 1.0), (100.0, 1e3), (-100.0, 1e-3)]


@dataclass
class Family:
    """A user's model: statistics are functions of the points."""

    functions: dict = field(default_factory=lambda: {"x": lambda x: x[:, 0]})
    space: object = field(default_factory=lambda: Reals(1))

    def __repr__(self):
        return "Family()"

    @property
    def groups(self):
        return {"all": list(self.functions)}

    def statistics(self, x):
        return np.column_stack([function(x) for function in self.functions.values()])

    def log_base(self, x):
        return np.zeros(len(x))


def made(data, model=GAUSSIAN, against=None, center=None, size=300):
    """One contrast with noise from a seed."""
    against = against or noise.StudentT.match(data)
    drawn = noise_set(against, data, size, np.random.default_rng(5))
    return contrast(model, data, drawn, center)


def fit(data, model=GAUSSIAN, **options):
    few = {"draws": 8, "tune": 2, "chains": 1, "cores": 1, "seed": 1, "progress": False}
    few["noise"] = "matched"
    return ncb.fit(model, data, **{**few, **options})


def to_x(origin, unit):
    """The matrix that takes theta of a Gaussian in y = unit (x + origin) to that of x."""
    return np.array([[unit, -(unit**2) * origin], [0.0, unit**2]])


@pytest.mark.parametrize(("origin", "unit"), UNITS)
def test_the_default_prior_does_not_depend_on_units_and_origin(origin, unit):
    """``theta_y' P_y theta_y = theta_x' P_x theta_x`` for the same density in both units."""
    of_x = weak_normal([made(X)], 0, 2).precision
    of_y = weak_normal([made(unit * (X + origin))], 0, 2).precision
    change = to_x(origin, unit)
    expected = change.T @ of_x @ change
    # The ridge of 1e-8 is felt where the two statistics are nearly one, far from the origin.
    tolerance = 1e-9 if origin == 0 else 1e-7 * (1 + origin**2)
    np.testing.assert_allclose(of_y, expected, rtol=tolerance)


def test_priors_on_the_scale_of_each_statistic_would_depend_on_the_origin():
    """The broken twin: independent priors, as they were, fail the same check by far."""

    def independent(data):
        return np.diag(GAUSSIAN.statistics(data).var(axis=0) / 100)

    change = to_x(100.0, 1.0)
    expected = change.T @ independent(X) @ change
    assert not np.allclose(independent(X + 100), expected, rtol=0.5)


def test_the_default_prior_is_the_covariance_over_the_data():
    prior = weak_normal([made(X[:80]), made(X[80:])], 0, 2)
    assert isinstance(prior, priors.MultivariateNormal)
    expected = np.cov(GAUSSIAN.statistics(X), rowvar=False) / 100
    np.testing.assert_allclose(prior.precision, expected, rtol=1e-6, atol=1e-9)
    one = weak_normal([made(X)], 1, 2)
    np.testing.assert_allclose(one.precision, expected[1:, 1:], rtol=1e-6)


@pytest.mark.parametrize(("origin", "unit"), UNITS)
def test_the_target_does_not_depend_on_units_and_origin(origin, unit):
    """Log odds at corresponding coefficients; the last differs by the log of the unit alone."""
    y = unit * (X + origin)
    of_x, of_y = (made(d, center=data_mean([made(d)])) for d in (X, y))
    coef = np.array([0.3, 1.2, -0.7])
    theta = np.linalg.solve(to_x(origin, unit), coef[:2])
    found = of_y.log_odds(np.append(theta, coef[2] - np.log(unit)))
    np.testing.assert_allclose(found, of_x.log_odds(coef), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("origin", "unit"), UNITS)
def test_the_posterior_does_not_depend_on_units_and_origin(origin, unit, seed):
    """Mean and sd implied by theta, in the data's own units, within Monte Carlo error."""

    def implied(data):
        posterior = fit(data, draws=1000, tune=200, chains=2, seed=seed)
        assert (posterior.summary()["r_hat"] < 1.05).all()
        linear, precision = np.moveaxis(posterior.theta.to_numpy()[:, :, 0], -1, 0)
        mean, sd = linear / precision, 1 / np.sqrt(precision)
        return ((mean - data.mean()) / data.std()).ravel(), (sd / data.std()).ravel()

    for of_x, of_y in zip(implied(X), implied(unit * (X + origin)), strict=True):
        # Autocorrelation leaves more than a tenth of the draws effective.
        error = np.sqrt((of_x.var() + of_y.var()) / (len(of_x) / 10))
        assert abs(of_x.mean() - of_y.mean()) < 5 * error
        assert of_y.std() == pytest.approx(of_x.std(), rel=0.25)
    assert abs(of_y.mean() - 1) < 4 * of_y.std()


def test_far_from_zero_the_fit_is_that_of_the_sample(seed):
    """The review's case: 100 standard deviations away, the mean must be that of the data."""
    data = X + 100
    posterior = fit(data, draws=500, tune=200, chains=2, noise_ratio=5, seed=seed)
    linear, precision = np.moveaxis(posterior.theta.to_numpy()[:, :, 0], -1, 0)
    mean, sd = linear / precision, 1 / np.sqrt(precision)
    assert abs(mean.mean() - data.mean()) < 4 * mean.std()
    assert abs(sd.mean() - data.std()) < 4 * sd.std()
    assert mean.std() < 0.2
    log_z = np.log(sd) + np.log(2 * np.pi) / 2 + (mean / sd) ** 2 / 2
    assert np.median(np.abs(posterior.log_z[..., 0] - log_z)) < 1


def test_heavy_tailed_noise_does_not_change_the_default_prior():
    narrow, heavy = noise.Normal(0.0, 2.0), noise.StudentT(np.zeros(1), 9 * np.eye(1), 1.0)
    one, other = (weak_normal([made(X, against=each)], 0, 2) for each in (narrow, heavy))
    assert np.abs(made(X, against=heavy).design.dense()).max() > 100 * X.max() ** 2
    np.testing.assert_array_equal(one.precision, other.precision)


BEYOND = Family(
    {
        "x": lambda x: x[:, 0],
        "beyond 5": lambda x: 1.0 * (x[:, 0] > 5),
        "below -5": lambda x: 1.0 * (x[:, 0] < -5),
    }
)


def test_statistics_that_are_constant_in_the_data_get_a_proper_prior():
    one = made(X, BEYOND, noise.Normal(0.0, 25.0))
    tails = one.design.dense()[:, 1:3]
    assert not tails[one.is_data].any()
    prior = weak_normal([one], 0, 3)
    assert np.linalg.eigvalsh(prior.precision)[0] > 0
    # On the scale that the statistic has over all points, and apart from the others.
    expected = np.diag([X.var(ddof=1), *tails.var(axis=0)]) / 100
    np.testing.assert_allclose(prior.precision, expected, rtol=1e-6, atol=1e-15)
    posterior = fit(X, BEYOND, noise=noise.Normal(0.0, 25.0), draws=50)
    assert np.isfinite(posterior.theta).all()


def test_a_statistic_constant_over_all_points_gets_a_unit_scale():
    constant = Family({"x": lambda x: x[:, 0], "0.1": lambda x: np.full(len(x), 0.1)})
    prior = weak_normal([made(X, constant)], 0, 2)
    assert prior.precision[1, 1] == pytest.approx(0.01)


@pytest.mark.parametrize(("rows", "kind"), [(20, priors.MultivariateNormal), (19, priors.Normal)])
def test_many_statistics_for_few_rows_get_independent_priors(rows, kind):
    powers = Family({f"cos {k}": lambda x, k=k: np.cos(k * x[:, 0]) for k in range(1, 11)})
    data = np.random.default_rng(0).uniform(-np.pi, np.pi, (rows, 1))
    prior = weak_normal([made(data, powers)], 0, 10)
    assert type(prior) is kind
    if kind is priors.Normal:
        expected = 10 / powers.statistics(data).std(axis=0)
        np.testing.assert_allclose(prior.scale, expected, rtol=1e-10)
        assert fit(data, powers).complete


def test_collinear_statistics_still_get_a_proper_prior():
    """More statistics than points can be collinear where nothing refuses them."""
    twice = Family({"x": lambda x: x[:, 0], "2x": lambda x: 2 * x[:, 0]})
    prior = weak_normal([made(X, twice)], 0, 2)
    assert np.linalg.eigvalsh(prior.precision)[0] > 0


def test_the_centre_is_the_mean_over_the_data_of_all_groups():
    parts = [made(X[:50], size=10), made(X[50:] + 3, size=1000)]
    data = np.concatenate([X[:50], X[50:] + 3])
    np.testing.assert_allclose(data_mean(parts), GAUSSIAN.statistics(data).mean(axis=0), rtol=1e-12)


class Structured(models.Gaussian):
    """A model with a design of its own."""

    def design(self, x):
        from ncbayes.linalg.designs import Dense

        return Dense(self.statistics(x))


def test_structured_designs_are_not_centred():
    posterior = fit(X, Structured(1))
    assert posterior.run.problem.center is None
    np.testing.assert_array_equal(
        posterior.data["normalizer"]["contrast_log_z"],
        -posterior.run.chains[0].draws["coef"][None, ..., -1],
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("unit", [1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200])
def test_data_of_any_unit_are_fitted_or_refused_in_a_sentence(unit):
    try:
        posterior = fit(unit * X, draws=50)
    except ncb.InputError as error:
        sentence = str(error)
    else:
        assert np.isfinite(posterior.theta).all()
        assert np.isfinite(posterior.log_z).all()
        return
    assert not 1e-30 <= unit <= 1e30
    assert "\n" not in sentence
    assert 20 < len(sentence) < 400


@pytest.mark.parametrize("unit", [1e-100, 1e100])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_data_of_extreme_units_are_refused_in_the_user_s_words(unit):
    with pytest.raises(ncb.InputError, match="rescale the data"):
        fit(unit * X)


def test_data_too_far_from_zero_are_told_to_be_centred():
    data = np.random.default_rng(1).normal(1e6, 1.0, size=(200, 1))
    lines = " ".join(fit(data).warning_lines())
    assert re.search(
        r"'(x1|-x1\^2/2)' .* of '(x1|-x1\^2/2)' \(and a constant\) .*centre and rescale", lines
    )
    assert "linear combination" not in " ".join(fit(data - data.mean()).warning_lines())


STEP = Family({"x": lambda x: x[:, 0], "x > 1": lambda x: 1.0 * (x[:, 0] > 1)})
# In group "low" neither data nor noise reach the step.
STEPPED = {"all of it": np.linspace(-2, 2, 40)[:, None], "low": np.linspace(-0.9, 0.9, 40)[:, None]}
STEPPED_NOISE = {
    "all of it": noise.Uniform(Box(-3.0, 3.0)),
    "low": noise.Uniform(Box(-1.0, 1.0)),
}


@pytest.mark.parametrize("prior", [None, priors.Normal(1.0)], ids=["default", "Normal"])
def test_a_statistic_constant_in_one_group_is_told_with_it_if_groups_are_apart(prior):
    """Refused before; the prior is proper, and theta follows it there."""
    posterior = fit(STEPPED, STEP, noise=STEPPED_NOISE, prior=prior)
    told = [line for line in posterior.warning_lines() if "over data and noise" in line]
    assert len(told) == 1
    assert told[0].startswith("in group 'low': the statistic 'x > 1' of Family() is constant over ")


def test_a_statistic_constant_in_one_group_is_learned_from_the_others_if_coupled():
    posterior = fit(
        STEPPED, STEP, noise=STEPPED_NOISE, prior=priors.RandomWalk(rate=1.0, initial="walk")
    )
    assert np.isfinite(posterior.theta).all()

import itertools
import math
import os
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats
from scipy.special import i0e, i1e

from ncbayes import models, noise
from ncbayes.base import InputError, Noise, NoiseSet
from ncbayes.contrast import contrast
from ncbayes.spaces import Binary, Box, Orthant, Reals, Torus, wrapped

SEED = int(os.environ.get("NCBAYES_TEST_SEED", "1"))
SIZE = 20_000
MEAN = np.array([0.5, -1.0])
MATRIX = np.array([[2.0, 0.6], [0.6, 1.0]])

# One-dimensional noise, a neighbour that is not it, and the range that holds all its mass.
LINE = {
    "uniform torus": (noise.Uniform(Torus(1)), noise.VonMises(0, 0.1), (0, 2 * math.pi)),
    "uniform box": (noise.Uniform(Box(-1, 2)), noise.Uniform(Box(-1, 2.2)), (-1, 2)),
    "normal": (noise.Normal(1, 0.25), noise.Normal(1.05, 0.25), (-6, 8)),
    "student": (noise.StudentT(0, 1, 4), noise.StudentT(0, 1.2, 4), (-math.inf, math.inf)),
    "von Mises": (noise.VonMises(6, 3), noise.VonMises(6.1, 3), (0, 2 * math.pi)),
    "flat von Mises": (noise.VonMises(1, 0), noise.VonMises(1, 0.1), (0, 2 * math.pi)),
    "gamma": (noise.Gamma(2.5, 2), noise.Gamma(2.7, 2), (0, math.inf)),
    "mixture": (
        noise.Mixture([noise.Normal(-2, 1), noise.Normal(2, 0.3)], (0.3, 0.7)),
        noise.Mixture([noise.Normal(-2, 1), noise.Normal(2, 0.3)], (0.35, 0.65)),
        (-9, 9),
    ),
}
LINES = pytest.mark.parametrize(("ours", "neighbour", "limits"), LINE.values(), ids=LINE)

# Noise in several dimensions, a neighbour, the exact mean and covariance of the noise.
PLANE = {
    "normal": (
        noise.Normal(MEAN, MATRIX),
        noise.Normal(MEAN, MATRIX * [[1, 0.8], [0.8, 1]]),
        MEAN,
        MATRIX,
    ),
    "student": (
        noise.StudentT(MEAN, MATRIX, 12),
        noise.StudentT(MEAN, MATRIX, 5),
        MEAN,
        MATRIX * 1.2,
    ),
    "gamma": (
        noise.Gamma((2, 0.5), (1, 3)),
        noise.Gamma((2, 0.5), (1, 3.3)),
        [2, 1 / 6],
        np.diag([2, 0.5 / 9]),
    ),
    "bernoulli": (
        noise.Bernoulli((0.2, 0.7)),
        noise.Bernoulli((0.2, 0.73)),
        [0.2, 0.7],
        np.diag([0.16, 0.21]),
    ),
    "uniform binary": (
        noise.Uniform(Binary(2)),
        noise.Bernoulli((0.5, 0.53)),
        [0.5, 0.5],
        np.eye(2) / 4,
    ),
    "product": (
        noise.Product([noise.Gamma(2, 1), noise.Normal(MEAN, MATRIX)]),
        noise.Product([noise.Gamma(2, 1), noise.Normal(-MEAN, MATRIX)]),
        [2, *MEAN],
        [[2, 0, 0], [0, 2, 0.6], [0, 0.6, 1]],
    ),
    "mixture": (
        noise.Mixture([noise.Normal(MEAN, MATRIX), noise.Normal(-MEAN, MATRIX)], (0.25, 0.75)),
        noise.Mixture([noise.Normal(MEAN, MATRIX), noise.Normal(-MEAN, MATRIX)], (0.3, 0.7)),
        -MEAN / 2,
        MATRIX + 0.75 * np.outer(MEAN, MEAN),
    ),
}
PLANES = pytest.mark.parametrize(
    ("ours", "neighbour", "mean", "covariance"), PLANE.values(), ids=PLANE
)


def rng():
    return np.random.default_rng(SEED)


def mass(distribution, low, high):
    def density(x):
        return math.exp(distribution.log_density(np.array([[x]]))[0])

    return integrate.quad(density, low, high, limit=200)[0]


def share_scores(distribution, limits, draws):
    """z-scores of the shares of draws below their own cuts against the integrated density."""
    cuts = np.quantile(distribution.sample(500, np.random.default_rng(0)), [0.2, 0.5, 0.8])
    expected = np.array([mass(distribution, limits[0], cut) for cut in cuts])
    observed = (draws <= cuts).mean(axis=0)
    return (observed - expected) / np.sqrt(expected * (1 - expected) / len(draws))


def moment_scores(mean, covariance, draws):
    """z-scores of the first and second moments of draws against the exact ones."""
    rows, columns = np.triu_indices(len(mean))
    centred = draws - mean
    values = np.hstack([centred, centred[:, rows] * centred[:, columns]])
    expected = np.concatenate([np.zeros(len(mean)), np.asarray(covariance)[rows, columns]])
    # A fair coin's squares do not vary at all.
    error = np.maximum(values.std(axis=0), 1e-9) / math.sqrt(len(draws))
    return (values.mean(axis=0) - expected) / error


@pytest.mark.parametrize("case", [*LINE.values(), *PLANE.values()], ids=[*LINE, *PLANE])
def test_every_noise_fulfils_the_contract(case):
    ours = case[0]
    draws = ours.sample(7, rng())
    assert isinstance(ours, Noise)
    assert draws.shape == (7, ours.dimension)
    assert draws.dtype == np.float64
    assert ours.log_density(draws).shape == (7,)
    assert np.isfinite(ours.log_density(draws)).all()
    assert ours.sample(0, rng()).shape == (0, ours.dimension)


@LINES
def test_densities_integrate_to_one(ours, neighbour, limits):
    assert mass(ours, *limits) == pytest.approx(1, abs=1e-7)


@LINES
def test_draws_follow_the_density_and_those_of_a_neighbour_do_not(ours, neighbour, limits):
    assert np.abs(share_scores(ours, limits, ours.sample(SIZE, rng()))).max() < 4.9
    assert np.abs(share_scores(ours, limits, neighbour.sample(10 * SIZE, rng()))).max() > 4.9


@PLANES
def test_draws_have_the_exact_moments_and_those_of_a_neighbour_do_not(
    ours, neighbour, mean, covariance
):
    assert np.abs(moment_scores(mean, covariance, ours.sample(SIZE, rng()))).max() < 4.9
    others = neighbour.sample(10 * SIZE, rng())
    assert np.abs(moment_scores(mean, covariance, others)).max() > 4.9


@pytest.mark.parametrize("ours", [noise.Bernoulli((0.2, 0.7, 0.4)), noise.Uniform(Binary(3))])
def test_discrete_densities_sum_to_one(ours):
    cube = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    assert np.exp(ours.log_density(cube)).sum() == pytest.approx(1)


def test_densities_are_those_of_scipy():
    x = rng().normal(size=(30, 2))
    positive = np.abs(x)
    normal = stats.multivariate_normal(MEAN, MATRIX).logpdf(x)
    assert noise.Normal(MEAN, MATRIX).log_density(x) == pytest.approx(normal)
    student = stats.multivariate_t(MEAN, MATRIX, df=4).logpdf(x)
    assert noise.StudentT(MEAN, MATRIX, 4).log_density(x) == pytest.approx(student)
    angles = stats.vonmises([0.5, 900], MEAN).logpdf(x).sum(axis=1)
    assert noise.VonMises(MEAN, (0.5, 900)).log_density(wrapped(x)) == pytest.approx(angles)
    gamma = stats.gamma([0.5, 3], scale=[1, 0.5]).logpdf(positive).sum(axis=1)
    assert noise.Gamma((0.5, 3), (1, 2)).log_density(positive) == pytest.approx(gamma)
    product = noise.Product([noise.Normal(MEAN, MATRIX), noise.Gamma((0.5, 3), (1, 2))])
    assert product.log_density(np.hstack([x, positive])) == pytest.approx(normal + gamma)
    mixture = noise.Mixture(
        [noise.Normal(MEAN, MATRIX), noise.StudentT(MEAN, MATRIX, 4)], (0.3, 0.7)
    )
    blend = np.log(0.3 * np.exp(normal) + 0.7 * np.exp(student))
    assert mixture.log_density(x) == pytest.approx(blend)


def test_densities_vanish_outside_the_support():
    outside = np.array([[0.5], [-0.5]])
    torus = noise.Uniform(Torus(1)), noise.VonMises(0, 1)
    for ours in (noise.Uniform(Box(0, 1)), noise.Gamma(1, 1), *torus):
        assert np.isfinite(ours.log_density(outside)).tolist() == [True, False]
        assert ours.log_density(outside)[1] == -math.inf
        nowhere = noise.Mixture([ours, ours], (0.5, 0.5)).log_density(outside)
        assert nowhere[1] == -math.inf
        beside = noise.Product([noise.Normal(0, 1), ours]).log_density(
            np.hstack([outside, outside])
        )
        assert np.isfinite(beside).tolist() == [True, False]
    assert noise.Bernoulli(0.5).log_density(outside).tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize("ours", [noise.Uniform(Torus(2)), noise.VonMises((0, 6), (0.1, 50))])
def test_noise_of_angles_lives_in_one_turn(ours):
    draws = ours.sample(SIZE, rng())
    assert Torus(2).contains(draws).all()
    for turn in ([2 * math.pi, 0], [0, -2 * math.pi], [0, math.inf]):
        assert (ours.log_density(np.add(draws, turn)) == -math.inf).all()


def test_noise_beside_the_torus_counts_but_has_no_row():
    """The log likelihood of all labels, those of noise at no angle included, written out."""
    model, q = models.VonMises(), noise.Normal(0.0, 9.0)
    data, points = model.sample(np.array([1.0, 0.5]), 20, rng()), q.sample(60, rng())
    made = contrast(model, data, NoiseSet(points, q.log_density(points), q.log_density(data)))
    on_torus = ((points >= 0) & (points < 2 * math.pi))[:, 0]
    assert 0 < on_torus.sum() < 60
    assert made.design.shape == (20 + on_torus.sum(), 3)
    coef = np.array([1.0, 0.5, -2.0])

    def weights(x, inside):
        of_data = 20 * np.exp(model.statistics(x) @ coef[:2] + coef[2]) * inside
        return of_data, 60 * np.exp(q.log_density(x))

    (a, b), (c, d) = weights(data, 1), weights(points, on_torus)
    expected = np.log(a / (a + b)).sum() + np.log(d / (c + d)).sum()
    assert made.log_likelihood(made.log_odds(coef)) == pytest.approx(expected)


def test_normal_and_student_match_mean_and_shrunk_covariance():
    data = rng().multivariate_normal(MEAN, MATRIX, 50)
    shrunk = np.cov(data.T)
    shrunk[0, 1] = shrunk[1, 0] = shrunk[0, 1] * 50 / 52
    normal, student = noise.Normal.match(data), noise.StudentT.match(data)
    assert normal.mean == pytest.approx(data.mean(axis=0))
    assert normal.covariance == pytest.approx(shrunk)
    assert student.mean == pytest.approx(data.mean(axis=0))
    assert student.shape_matrix * 5 / 3 == pytest.approx(shrunk)
    assert noise.StudentT.match(data, df=8).df == 8


@pytest.mark.parametrize("rows", [2, 5])
def test_few_rows_and_collinear_columns_still_match(rows):
    column = rng().normal(size=(rows, 1))
    data = np.hstack(
        [column, 1e12 * column, 1e-12 * column, 1 - column, rng().normal(size=(rows, 20))]
    )
    assert np.isfinite(noise.Normal.match(data).log_density(data)).all()


@pytest.mark.parametrize("concentration", [1e-6, 0.1, 1.0, 5.0, 80.0, 1e4, 9e5])
def test_concentration_solves_the_equation(concentration):
    resultant = i1e(concentration) / i0e(concentration)
    # Two angles at +-a have resultant cos(a).
    half = (
        math.acos(resultant)
        if concentration < 100
        else 2 * math.asin(math.sqrt((1 - resultant) / 2))
    )
    found = noise.VonMises.match(np.array([[2 + half], [2 - half]]))
    assert found.mean[0] == pytest.approx(2)
    assert found.concentration[0] == pytest.approx(concentration, rel=1e-6)


def test_concentration_is_safe_at_its_ends():
    data = np.array([[0.0, 1.0], [math.pi, 1.0]])
    found = noise.VonMises.match(data)
    assert found.concentration == pytest.approx([0, 1e6], abs=1e-6)
    assert np.isfinite(found.log_density(data)).all()


def test_gamma_matches_moments_and_is_finite_at_zeros():
    data = rng().gamma((2.0, 3.0), (1.0, 0.5), (100, 2))
    found = noise.Gamma.match(data)
    assert found.shape / found.rate == pytest.approx(data.mean(axis=0))
    assert found.shape / found.rate**2 == pytest.approx(data.var(axis=0, ddof=1))
    data[0, 0] = 0
    found = noise.Gamma.match(data)
    assert found.shape[0] == 1
    assert found.rate[0] == pytest.approx(1 / data[:, 0].mean())
    assert np.isfinite(found.log_density(data)).all()


def test_gamma_never_matches_a_shape_whose_draws_underflow():
    found = noise.Gamma.match(np.array([[1e-9]] * 999 + [[1.0]]))
    assert found.shape[0] == 0.1
    assert (found.sample(SIZE, rng()) > 0).all()


def test_bernoulli_keeps_away_from_the_ends():
    found = noise.Bernoulli.match(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    assert found.probability == pytest.approx([1 / 4, 3 / 4, 1 / 2])


@dataclass(frozen=True)
class Interval:
    """A space of the user's own."""

    log_volume: float
    dimension: int = 1

    def check(self, points, columns):
        return points

    def uniform(self, size, rng):
        return rng.random((size, 1))

    def contains(self, points):
        return ((points >= 0) & (points <= 1)).all(axis=1)


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (Torus(1), noise.VonMises),
        (Box(0, 1), noise.Uniform),
        (Reals(1), noise.StudentT),
        (Orthant(1), noise.Gamma),
        (Binary(1), noise.Bernoulli),
        (Interval(0.0), noise.Uniform),
    ],
    ids=lambda case: str(case),
)
def test_each_space_has_its_default_noise(space, kind):
    data = np.array([[0.0], [1.0], [1.0]])
    found = noise.matched(space, data)
    assert isinstance(found, kind)
    assert np.isfinite(found.log_density(data)).all()


def test_an_unknown_unbounded_space_needs_noise_of_its_own():
    with pytest.raises(InputError, match=r"no default noise for Interval.*pass noise=\.\.\."):
        noise.matched(Interval(math.inf), np.zeros((2, 1)))


@pytest.mark.parametrize("match", [noise.Normal.match, noise.StudentT.match, noise.Gamma.match])
def test_constant_columns_cannot_be_matched(match):
    data = np.array([[1.0, 0.1], [2.0, 0.1], [3.0, 0.1]])
    with pytest.raises(InputError, match=r"constant column 1 .* value 0.1: drop this column or"):
        match(data)


MATCHES = {
    "normal": (noise.Normal.match, [1.0, 2.0, 4.0]),
    "student": (noise.StudentT.match, [1.0, 2.0, 4.0]),
    "von Mises": (noise.VonMises.match, [1.0, 2.0, 4.0]),
    "gamma": (noise.Gamma.match, [1.0, 2.0, 4.0]),
    "bernoulli": (noise.Bernoulli.match, [0.0, 1.0, 1.0]),
}


@pytest.mark.parametrize(("match", "values"), MATCHES.values(), ids=MATCHES)
@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.DataFrame, pl.Series])
def test_noise_matches_data_of_every_kind(match, values, kind):
    x = np.array(values)[:, None]
    found = match(kind(values))
    assert found.dimension == 1
    assert np.array_equal(found.log_density(x), match(x).log_density(x))


@pytest.mark.parametrize(("match", "values"), MATCHES.values(), ids=MATCHES)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda x: [*x, "a"],
            r"^data must be numbers, got a \(str\) in row 3 .*: drop this column",
        ),
        (lambda x: [*x, math.nan], r"^data must be finite numbers, .* row 3 .*: nan: drop these"),
        (lambda x: [], r"^data must have rows and columns, got empty data, shape \(0,\)$"),
        (lambda x: np.empty((0, 0)), r"^data must have rows and columns, .* shape \(0, 0\)$"),
        (lambda x: x[:1], "^data must have at least 2 rows, one for each observation, got 1$"),
        (lambda x: [x], "^data must have at least 2 rows, one for each observation, got 1$"),
        (lambda x: [x, x[:1]], "^data must have rows of equal length, got a list with rows of"),
        (lambda x: "data.csv", "^data must be an array, a list or a data frame .* got str$"),
        (lambda x: None, "^data must be an array, a list or a data frame .* got NoneType$"),
        (lambda x: np.ones((2, 2, 2)), r".* got 3 dimensions, shape \(2, 2, 2\): reshape it"),
    ],
)
def test_data_that_cannot_be_matched_are_refused_in_plain_words(match, values, spoil, message):
    with pytest.raises(InputError, match=message):
        match(spoil(values))


@pytest.mark.parametrize(
    ("match", "data", "message"),
    [
        (
            noise.VonMises.match,
            [0, 90, 359],
            r"^angles must be in radians.*pass np.deg2rad\(data\)",
        ),
        (
            noise.Gamma.match,
            [1, -2, 3],
            "^data must be zero or positive, got 1 such value in row 1",
        ),
        (noise.Bernoulli.match, [0, 1, 2], "^data must be 0 or 1, got 1 such value .* 2: recode"),
    ],
)
def test_data_off_the_support_cannot_be_matched(match, data, message):
    with pytest.raises(InputError, match=message):
        match(data)


class Unsized:
    """Noise that does not tell its dimension."""

    def sample(self, size, rng):
        return rng.normal(size=(size, 1))

    def log_density(self, x):
        return np.zeros(len(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: noise.Uniform(Reals(2)), "no uniform distribution on Reals"),
        (lambda: noise.Normal((0, 0), np.eye(3)), r"mean .* covariance .* \(2,\) and \(3, 3\)"),
        (lambda: noise.Normal(0, math.nan), "finite mean and covariance, got missing"),
        (lambda: noise.Normal((0, 0), [[1, 2], [2, 1]]), "covariance, got one with smallest .* -1"),
        (lambda: noise.StudentT((0, 0), [[1, 1], [0, 1]]), "shape_matrix, got one .* not symm"),
        (lambda: noise.StudentT(0, 1, df=0), "positive, finite df, got 0"),
        (lambda: noise.StudentT.match(np.eye(2), df=2), "needs a finite df above 2, got 2"),
        (lambda: noise.VonMises((0, 0), 1), r"one mean and one concentration .* \(2,\), \(1,\)"),
        (lambda: noise.VonMises(0, -1), r"concentration from 0 up, got mean=\[0.0\], conc.*-1.0"),
        (lambda: noise.VonMises(math.inf, 1), r"finite numbers .* got mean=\[inf\]"),
        (lambda: noise.Gamma((1, 1), 1), r"one shape and one rate for each column, got shapes"),
        (lambda: noise.Gamma(0, 1), r"above 0, got shape=\[0.0\], rate=\[1.0\]"),
        (lambda: noise.Gamma(1, 0), r"above 0, got shape=\[1.0\], rate=\[0.0\]"),
        (lambda: noise.Bernoulli((0.5, 1)), r"above 0 and below 1, got probability=\[0.5, 1.0\]"),
        (lambda: noise.Bernoulli([[0.5]]), r"one probability for each column, got .* \(1, 1\)"),
        (lambda: noise.Product([]), "Product needs at least one part, got none"),
        (lambda: noise.Product([Unsized()]), "dimension .*, got Unsized without one: give"),
        (lambda: noise.Mixture([], []), "Mixture needs at least one part, got none"),
        (
            lambda: noise.Mixture([noise.Normal(0, 1), noise.Normal(MEAN, MATRIX)], (0.5, 0.5)),
            r"parts of one dimension, got dimensions \[1, 2\]",
        ),
        (
            lambda: noise.Mixture([noise.Normal(0, 1)], (0.5, 0.5)),
            r"a positive weight for each of its 1 parts, with sum 1, got \[0.5, 0.5\]",
        ),
        (
            lambda: noise.Mixture([noise.Normal(0, 1)] * 2, (0.5, 0.6)),
            r"with sum 1, got \[0.5, 0.6\]: pass weights / weights.sum\(\)",
        ),
        (
            lambda: noise.Mixture([noise.Normal(0, 1)] * 2, (1.5, -0.5)),
            "a positive weight for each",
        ),
    ],
)
def test_unusable_parameters_are_refused_in_plain_words(make, message):
    with pytest.raises(InputError, match=message):
        make()


NUMBERS = r"must be a number or an array of numbers, such as 1.5 or \[1.5, 2.0\], got"
SPACE = r"^Uniform\(space\) needs a space such as ncbayes.spaces.Torus\(2\) or .*, got"
PARTS = r"needs a list of noise, such as \[ncbayes.noise.Normal\(0, 1\), .*\], got"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: noise.Uniform(3), f"{SPACE} 3$"),
        (lambda: noise.Uniform("torus"), f"{SPACE} 'torus'$"),
        (lambda: noise.Uniform(Torus), f"{SPACE} the class Torus$"),
        (lambda: noise.Normal("a", 1), rf"^Normal\(mean=...\) {NUMBERS} 'a'$"),
        (lambda: noise.Normal(0, "1"), rf"^Normal\(covariance=...\) {NUMBERS} '1'$"),
        (lambda: noise.Normal([], []), rf"^Normal\(mean=...\) {NUMBERS} \[\]$"),
        (lambda: noise.Normal([0, [1, 2]], 1), rf"^Normal\(mean=...\) {NUMBERS} \[0, \[1, 2\]\]$"),
        (lambda: noise.StudentT(0, None), rf"^StudentT\(shape_matrix=...\) {NUMBERS} None$"),
        (lambda: noise.StudentT(0, 1, df="5"), "^StudentT needs a positive, finite df, got '5'; 5"),
        (lambda: noise.StudentT(0, 1, df=[5, 6]), r"positive, finite df, got \[5, 6\]; 5 is the"),
        (lambda: noise.StudentT(0, 1, df=True), "positive, finite df, got True; 5 is the default$"),
        (lambda: noise.StudentT.match([1, 2], df="5"), "^StudentT.match needs a .* 2, got '5'; 5"),
        (lambda: noise.VonMises("a", 1), rf"^VonMises\(mean=...\) {NUMBERS} 'a'$"),
        (lambda: noise.VonMises(0, "b"), rf"^VonMises\(concentration=...\) {NUMBERS} 'b'$"),
        (lambda: noise.Gamma("a", 1), rf"^Gamma\(shape=...\) {NUMBERS} 'a'$"),
        (lambda: noise.Gamma(1, 1j), rf"^Gamma\(rate=...\) {NUMBERS} 1j$"),
        (lambda: noise.Gamma(1, [1] * 999 + ["a"]), rf"^Gamma\(rate=...\) {NUMBERS} .*\.\.\.$"),
        (lambda: noise.Bernoulli("half"), rf"^Bernoulli\(probability=...\) {NUMBERS} 'half'$"),
        (lambda: noise.Bernoulli(True), rf"^Bernoulli\(probability=...\) {NUMBERS} True$"),
        (lambda: noise.Bernoulli([2.0] * 999), r"above 0 and below 1, got probability=.*\.\.\.$"),
        (lambda: noise.Product(noise.Gamma(1, 1)), rf"^Product {PARTS} Gamma\(shape=1, rate=1\)$"),
        (lambda: noise.Product("ab"), f"^Product {PARTS} 'ab'$"),
        (lambda: noise.Product(None), f"^Product {PARTS} None$"),
        (lambda: noise.Product([noise.Normal]), rf"{PARTS} the class Normal as part 0 \(counted"),
        (
            lambda: noise.Mixture([noise.Normal(0, 1), 3], (0.5, 0.5)),
            rf"^Mixture {PARTS} 3 as part 1 \(counted from 0\)$",
        ),
        (
            lambda: noise.Mixture([noise.Normal(0, 1)], "a"),
            rf"^Mixture\(weights=...\) {NUMBERS} 'a'$",
        ),
    ],
)
def test_what_is_no_number_space_or_noise_is_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250

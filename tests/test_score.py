"""The Hyvarinen score as a quadratic loss, against closed forms, differences and the truth."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes import score
from ncbayes.score import check_scores, score_loss

POINTS = 3000


@dataclass(frozen=True)
class Slope:
    """Points of a box with a slope and a base that is not constant, in each coordinate alone."""

    space = ncb.spaces.Box([0.0, -1.0], [1.0, 2.0])
    groups = {"slope": ("x1", "x2")}  # noqa: RUF012

    def statistics(self, x):
        return x.copy()

    def log_base(self, x):
        return -(x[:, 0] ** 2) + np.sin(x[:, 1])

    def score_statistics(self, x, j):
        first, second = np.zeros((2, len(x), 3))
        first[:, j] = 1.0
        first[:, 2] = -2 * x[:, 0] if j == 0 else np.cos(x[:, 1])
        second[:, 2] = -2.0 if j == 0 else -np.sin(x[:, 1])
        return first, second

    def sample(self, theta, size, rng):
        x = self.space.uniform(40 * size, rng)
        log = x @ theta + self.log_base(x)
        return x[np.log(rng.random(len(x))) < log - log.max()][:size]


MODELS = [
    (ncb.models.VonMises(), [1.0, -0.5]),
    (ncb.models.Gaussian(2), [0.3, -1.0, 1.5, 1.0, 0.4]),
    (ncb.models.Exponential(), [2.0]),
    (ncb.models.Gamma(), [2.5, 1.5]),
    (ncb.models.TorusGraph(3), np.linspace(-0.4, 0.5, 18)),
    (ncb.models.TorusGraph(3, marginal=False, rotational=False), np.linspace(-0.4, 0.5, 6)),
    (
        ncb.models.TorusGraph(4, reflectional=False, edges=[(0, 1), (3, 1)]),
        np.linspace(0.5, -0.4, 12),
    ),
    (Slope(), [1.0, -0.5]),
]
TABLE = pytest.mark.parametrize(("model", "theta"), MODELS, ids=repr)


def data_of(model, theta, rng, size=60):
    return model.sample(np.array(theta), size, rng)


def by_differences(model, theta, x, step=1e-4):
    """The score of each point from the log density: d_j (h_j d_j log p) + h_j (d_j log p)^2 / 2.

    With the weight inside the outer difference, so that its own derivative is not needed.
    """

    def log_p(points):
        return model.statistics(points) @ theta + model.log_base(points)

    total = np.zeros(len(x))
    for unit in step * np.eye(x.shape[1]):
        j = int(np.argmax(unit))
        low, middle, high = (log_p(x - unit), log_p(x), log_p(x + unit))
        before, at, after = (
            model.space.score_weight(each)[0][:, j] for each in (x - unit / 2, x, x + unit / 2)
        )
        total += (after * (high - middle) - before * (middle - low)) / step**2
        total += at * ((high - low) / (2 * step)) ** 2 / 2
    return total


@TABLE
def test_the_loss_is_that_of_differences_of_the_log_density(model, theta, seed):
    rng = np.random.default_rng(seed)
    x = data_of(model, theta, rng)
    x = x[np.all((x > 0.02) | (model.space == ncb.spaces.Reals(2)), axis=1)]
    loss = score_loss(model, x)
    one, other = np.array(theta), rng.standard_normal(len(theta))
    wanted = by_differences(model, one, x) - by_differences(model, other, x)
    # Only differences, since the loss is known up to a constant.
    got = loss.value(one) - loss.value(other)
    assert got == pytest.approx(wanted.sum(), rel=1e-5, abs=1e-4)
    assert np.array_equal(loss.gram, loss.gram.T)
    assert np.linalg.eigvalsh(loss.gram)[0] > -1e-10
    assert loss.rows == len(x)


def equations(model, theta, x):
    """Each point's part of ``gram theta - shift``, whose mean is zero at the truth."""
    parts = [score_loss(model, row[None]) for row in x]
    return np.array([part.gram @ theta - part.shift for part in parts])


def z_scores(rows):
    # For an exponential the plain score's equation is the same at every point.
    spread = np.maximum(rows.std(axis=0, ddof=1), 1e-12)
    return rows.mean(axis=0) / (spread / np.sqrt(len(rows)))


def limit(count):
    return -ndtri(1e-6 / 2 / count)


@TABLE
def test_the_truth_solves_the_equations_of_the_score(model, theta, seed):
    theta = np.array(theta)
    x = data_of(model, theta, np.random.default_rng(seed), POINTS)
    assert np.all(np.abs(z_scores(equations(model, theta, x))) < limit(len(theta)))


@pytest.mark.parametrize("space", [ncb.spaces.Orthant, ncb.spaces.Box])
def test_the_plain_score_is_wrong_where_the_space_ends(space, seed, monkeypatch):
    """The twin: without weights the boundary counts, and the truth solves nothing."""
    monkeypatch.setattr(space, "score_weight", ncb.spaces.Reals.score_weight)
    model, theta = MODELS[2] if space is ncb.spaces.Orthant else MODELS[-1]
    x = data_of(model, theta, np.random.default_rng(seed), POINTS)
    assert np.any(np.abs(z_scores(equations(model, np.array(theta), x))) > limit(len(theta)))


def test_a_weight_without_its_slope_is_wrong(seed, monkeypatch):
    monkeypatch.setattr(ncb.spaces.Orthant, "score_weight", lambda self, x: (x**2, 0 * x))
    x = data_of(*MODELS[3], np.random.default_rng(seed), POINTS)
    assert np.any(np.abs(z_scores(equations(MODELS[3][0], np.array([2.5, 1.5]), x))) > limit(2))


def test_von_mises_in_closed_form(seed):
    x = data_of(*MODELS[0], np.random.default_rng(seed))
    cos, sin = np.cos(x[:, 0]), np.sin(x[:, 0])
    loss = score_loss(ncb.models.VonMises(), x)
    wanted = [[np.sum(sin**2), -np.sum(sin * cos)], [-np.sum(sin * cos), np.sum(cos**2)]]
    np.testing.assert_allclose(loss.gram, wanted, rtol=1e-12)
    np.testing.assert_allclose(loss.shift, [cos.sum(), sin.sum()], rtol=1e-12)


def test_for_gaussians_the_least_score_is_the_maximum_of_the_likelihood(seed):
    model = ncb.models.Gaussian(3)
    x = np.random.default_rng(seed).standard_normal((50, 3)) @ np.array(
        [[1.0, 0.3, 0.0], [0.0, 2.0, 0.5], [0.0, 0.0, 0.7]]
    )
    loss = score_loss(model, x)
    linear, precision = model.linear_and_precision(np.linalg.solve(loss.gram, loss.shift))
    wanted = np.linalg.inv(np.cov(x, rowvar=False, bias=True))
    np.testing.assert_allclose(precision, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(linear, wanted @ x.mean(axis=0), rtol=1e-9, atol=1e-9)


def test_for_positive_numbers_the_least_score_is_that_of_moments(seed):
    x = data_of(*MODELS[3], np.random.default_rng(seed))
    loss = score_loss(ncb.models.Gamma(), x)
    shape, rate = x.mean() ** 2 / x.var(), x.mean() / x.var()
    np.testing.assert_allclose(np.linalg.solve(loss.gram, loss.shift), [shape, rate], rtol=1e-9)
    loss = score_loss(ncb.models.Exponential(), x)
    np.testing.assert_allclose(loss.shift / loss.gram[0], 2 * x.sum() / np.sum(x**2), rtol=1e-12)


def test_how_the_rows_are_cut_changes_nothing(monkeypatch, seed):
    model, theta = MODELS[4]
    x = data_of(model, theta, np.random.default_rng(seed))
    whole = score_loss(model, x)
    monkeypatch.setattr(score, "SLICE_ENTRIES", 150)
    cut = score_loss(model, x)
    np.testing.assert_allclose(cut.gram, whole.gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cut.shift, whole.shift, rtol=1e-12, atol=1e-12)


@dataclass(frozen=True)
class Careless(ncb.models.VonMises):
    """Returns something else than two arrays (n, p + 1)."""

    returned: object = field(default=None)

    def score_statistics(self, x, j):
        return self.returned


ANGLES = np.array([[0.1], [0.5], [2.0]])


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (np.zeros((3, 3)), r"one array of shape \(3, 3\)$"),
        ((np.zeros((3, 2)), np.zeros((3, 2))), r"shapes \[\(3, 2\), \(3, 2\)\]$"),
        ("ab", "'ab'$"),
        (None, "None$"),
    ],
    ids=["one array", "no column for log_base", "text", "nothing"],
)
def test_derivatives_of_another_shape_are_refused(returned, got):
    with pytest.raises(ncb.InputError, match=r"must return two arrays of shape \(3, 3\).* " + got):
        score_loss(Careless(returned), ANGLES)


def test_what_has_no_derivatives_is_refused_in_one_sentence():
    needed = "^the Hyvarinen score needs continuous points on a Torus, Reals, an Orthant or a Box"
    with pytest.raises(ncb.InputError, match=needed + r", got Ising\(2\) on Binary.*auto"):
        score_loss(ncb.models.Ising(2), np.zeros((3, 2)))

    class Mine:
        space = ncb.spaces.Torus(1)
        groups = {"mean": ("cos",)}  # noqa: RUF012

    with pytest.raises(ncb.InputError, match=r"Mine has no score_statistics\(x, j\), .*write it"):
        score_loss(Mine(), ANGLES)
    with pytest.raises(ncb.InputError, match=r"derivative of Gamma\(\) is not finite at row 1 of"):
        score_loss(ncb.models.Gamma(), np.array([[1.0], [0.0]]))


def test_statistics_that_the_score_cannot_see_are_named():
    names = ["a", "b", "c"]

    def loss(root):
        return score.ScoreLoss(root.T @ root, np.zeros(3), len(root))

    rng = np.random.default_rng(1)
    root = rng.standard_normal((9, 3))
    check_scores([loss(root)], names, "Mine")
    with pytest.raises(ncb.InputError, match=r"statistic 'b' of Mine has no derivative at any"):
        check_scores([loss(root * [1.0, 0.0, 1.0])], names, "Mine")
    dependent = root.copy()
    dependent[:, 2] = dependent[:, 0] - 2 * dependent[:, 1]
    with pytest.raises(ncb.InputError, match="of Mine are a linear combination of those of others"):
        check_scores([loss(dependent)], names, "Mine")
    check_scores([loss(dependent[:2])], names, "Mine")
    check_scores([loss(dependent), loss(root)], names, "Mine")


@pytest.mark.parametrize(
    "space",
    [
        ncb.spaces.Torus(2),
        ncb.spaces.Reals(2),
        ncb.spaces.Orthant(2),
        ncb.spaces.Box([0.0, -1.0], [1.5, 2.0]),
    ],
    ids=repr,
)
def test_weights_of_spaces_have_the_slope_they_say(space):
    x = np.array([[0.3, 0.7], [1.2, 1.9], [0.9, 0.1]])
    _, slope = space.score_weight(x)
    high, low = (space.score_weight(x + step)[0] for step in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (high - low) / 2e-5, rtol=1e-6, atol=1e-9)


def test_weights_vanish_where_a_space_ends():
    assert not np.any(ncb.spaces.Orthant(2).score_weight(np.zeros((1, 2))))
    box = ncb.spaces.Box([0.0, -1.0], [1.5, 2.0])
    assert not np.any(box.score_weight(np.array([[0.0, -1.0], [1.5, 2.0]])))

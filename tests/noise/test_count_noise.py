import math

import numpy as np
import pytest
from scipy import stats

import ncbayes as ncb
from ncbayes import noise
from ncbayes.noise.auto import families
from ncbayes.spaces import Counts
from ncbayes.testing import check_noise

LIMIT = 30


def data(seed, most=LIMIT):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.poisson(4.0, 300), rng.negative_binomial(1.0, 0.2, 300)])
    return np.minimum(x, most).astype(float)


MADE = {
    "unlimited": lambda x: (noise.NegativeBinomial([3.0, 0.4], [2.0, 0.5]), Counts(2)),
    "limited": lambda x: (noise.NegativeBinomial([3.0, 9.0], [2.0, 0.5], 12), Counts(2, 12)),
    "matched": lambda x: (noise.matched(Counts(2), x), Counts(2)),
    "matched, limited": lambda x: (noise.matched(Counts(2, LIMIT), x), Counts(2, LIMIT)),
    "margins": lambda x: (noise.margins(x, Counts(2)), Counts(2)),
    "margins, limited": lambda x: (noise.margins(x, Counts(2, LIMIT)), Counts(2, LIMIT)),
    "uniform": lambda x: (noise.Uniform(Counts(2, 9)), Counts(2, 9)),
}
EVERY = pytest.mark.parametrize("made", MADE.values(), ids=MADE)


@EVERY
def test_probabilities_sum_to_one_and_vanish_elsewhere(made, seed):
    ours, space = made(data(seed))
    axis = np.arange(400.0) if space.most is None else np.arange(space.most + 1.0)
    one, other = np.meshgrid(axis, axis)
    total = np.exp(ours.log_density(np.column_stack([one.ravel(), other.ravel()]))).sum()
    assert total == pytest.approx(1, abs=1e-9)
    outside = np.array([[0.5, 1.0], [-1.0, 1.0], [math.nan, 1.0]])
    assert np.isneginf(ours.log_density(outside)).all()
    if space.most is not None:
        assert np.isneginf(ours.log_density(np.array([[space.most + 1.0, 0.0]]))).all()


@EVERY
def test_noise_passes_its_check(made, seed):
    ours, space = made(data(seed))
    draws = ours.sample(200, np.random.default_rng(seed))
    assert draws.shape == (200, 2)
    assert space.contains(draws).all()
    check_noise(ours, space, seed=seed)


class Wrong:
    """Draws of one noise and the density of another."""

    dimension = 2

    def __init__(self, drawn, told):
        self.sample, self.log_density = drawn.sample, told.log_density


@pytest.mark.parametrize("most", [None, 40])
def test_the_check_refuses_draws_of_another_density(most, seed):
    right = noise.NegativeBinomial([3.0, 5.0], [2.0, 1.0], most)
    wrong = noise.NegativeBinomial([3.0, 5.0], [2.0, 1.3], most)
    with pytest.raises(AssertionError, match="do not follow its log_density"):
        check_noise(Wrong(right, wrong), Counts(2, most), seed=seed)


def test_densities_are_those_of_scipy():
    x = np.arange(25.0)[:, None]
    size, mean = 2.5, 4.0
    ours = noise.NegativeBinomial(mean, size)
    theirs = stats.nbinom(size, size / (size + mean))
    assert ours.log_density(x) == pytest.approx(theirs.logpmf(x[:, 0]), rel=1e-10)
    cut = noise.NegativeBinomial(mean, size, 10)
    inside = theirs.logpmf(x[:11, 0]) - theirs.logcdf(10)
    assert cut.log_density(x[:11]) == pytest.approx(inside, rel=1e-10)


def test_matching_means_and_variances(seed):
    x = data(seed)
    found = noise.NegativeBinomial.match(x)
    assert found.mean == pytest.approx((x.sum(axis=0) + 0.5) / 301)
    variance = found.mean + found.mean**2 / found.size
    # Poisson counts are matched by something a little wider.
    assert variance == pytest.approx([1.5 * found.mean[0], x[:, 1].var(ddof=1)])
    zeros = noise.NegativeBinomial.match(np.zeros((9, 1)))
    assert zeros.mean == pytest.approx([0.05])
    assert zeros.log_density(np.array([[3.0]]))[0] > -math.inf


def test_frequencies_are_how_often_each_count_occurs():
    ours = noise.Frequencies([1, 0, 3])
    x = np.array([[0.0], [1.0], [2.0], [3.0], [0.5], [-1.0]])
    assert np.exp(ours.log_density(x)) == pytest.approx([0.25, 0, 0.75, 0, 0, 0])
    assert set(ours.sample(200, np.random.default_rng(0))[:, 0]) == {0.0, 2.0}
    only = noise.Frequencies([2.0])
    assert only.log_density(np.array([[0.0], [1.0]])).tolist() == [0.0, -math.inf]


def test_automatic_noise_tries_margins_of_counts(seed):
    ((name, family),) = families(Counts(2, LIMIT)).items()
    assert name == "margins"
    assert np.isfinite(family(data(seed)).log_density(data(seed))).all()


def test_the_space_of_counts():
    space = Counts(2, 3)
    assert space.log_volume == pytest.approx(math.log(16))
    assert Counts(2).log_volume == math.inf
    draws = space.uniform(200, np.random.default_rng(0))
    assert set(draws.ravel()) == {0.0, 1.0, 2.0, 3.0}
    points = np.array([[0.0, 3.0], [0.0, 4.0], [0.5, 1.0], [-1.0, 1.0], [math.inf, 0.0]])
    assert space.contains(points).tolist() == [True, False, False, False, False]
    assert Counts(2).contains(points).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Counts(0), r"Counts\(dimension\) needs a whole number of at least 1, got 0"),
        (
            lambda: Counts(1, 2.5),
            r"Counts\(most=...\) must be a whole number of at least 1, .* 2.5",
        ),
        (lambda: noise.Uniform(Counts(1)), "no uniform distribution on Counts.*NegativeBinomial"),
        (lambda: noise.NegativeBinomial(0, 1), r"NegativeBinomial needs finite numbers above 0"),
        (lambda: noise.NegativeBinomial([1], [1, 2]), "one mean and one size for each column"),
        (lambda: noise.NegativeBinomial("a", 1), r"NegativeBinomial\(mean=...\) must be a number"),
        (
            lambda: noise.Frequencies([0, 0]),
            "Frequencies needs finite numbers from 0 up and not all",
        ),
        (lambda: noise.NegativeBinomial.match([[0.5], [1]]), "data must be counts, whole numbers"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ncb.InputError, match=message):
        call()

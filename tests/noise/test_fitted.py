import itertools
import math
import os
import pickle
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from ncbayes import noise
from ncbayes.base import InputError, Noise
from ncbayes.noise import kernels
from ncbayes.spaces import Binary, Box, Orthant, Reals, Torus, wrapped
from ncbayes.testing import check_noise

SEED = int(os.environ.get("NCBAYES_TEST_SEED", "1"))
TURN = 2 * math.pi


def rng():
    return np.random.default_rng(SEED)


def box(d):
    return Box([-1.0] * d, [2.0] * d)


def dependent(d, n=80):
    """Correlated normals, the raw material of the data of each space."""
    z = rng().standard_normal((n, d))
    return z + 0.7 * z[:, [0]]


# Space, data there, and what holds nearly all of the mass of a kernel density in one column.
SPACES = {
    "reals": (Reals, lambda d: dependent(d), (-15, 15)),
    "torus": (Torus, lambda d: wrapped(0.8 * dependent(d) + 6), (0, TURN)),
    "orthant": (Orthant, lambda d: np.abs(dependent(d)), (0, 20)),
    "box": (box, lambda d: np.clip(dependent(d), -1, 2), (-1, 2)),
    "binary": (Binary, lambda d: (dependent(d) > 0.4).astype(float), None),
}
EVERY = pytest.mark.parametrize(("space", "data", "limits"), SPACES.values(), ids=SPACES)
SMOOTH = pytest.mark.parametrize(
    ("space", "data", "limits"), list(SPACES.values())[:4], ids=list(SPACES)[:4]
)
COLUMNS = pytest.mark.parametrize("d", [1, 2, 5])


def density_at(ours, *columns):
    return np.exp(ours.log_density(np.column_stack([np.ravel(column) for column in columns])))


def integral_on_a_grid(ours, limits, steps=800):
    """Midpoint rule in two columns."""
    low, high = limits
    middle = low + (high - low) * (np.arange(steps) + 0.5) / steps
    a, b = np.meshgrid(middle, middle)
    return density_at(ours, a, b).mean() * (high - low) ** 2


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


@EVERY
@COLUMNS
def test_kernel_densities_fulfil_the_contract(space, data, limits, d):
    ours = noise.KernelDensity.match(data(d), space(d))
    draws = ours.sample(7, rng())
    assert isinstance(ours, Noise)
    assert draws.shape == (7, d)
    assert draws.dtype == np.float64
    assert space(d).contains(draws).all()
    assert ours.sample(0, rng()).shape == (0, d)
    assert ours.log_density(np.empty((0, d))).shape == (0,)
    again = pickle.loads(pickle.dumps(ours))
    assert np.array_equal(again.sample(7, rng()), draws)
    assert np.array_equal(again.log_density(draws), ours.log_density(draws))


@EVERY
@COLUMNS
def test_draws_of_kernel_densities_follow_their_density(space, data, limits, d):
    check_noise(noise.KernelDensity.match(data(d), space(d)), space(d), seed=SEED)


@EVERY
@COLUMNS
def test_draws_of_another_bandwidth_or_density_are_rejected(space, data, limits, d):
    ours = noise.KernelDensity.match(data(d), space(d))
    wider = replace(ours, bandwidth=np.asarray(ours.bandwidth) * 4) if limits else None
    # In one binary column a bandwidth only moves the mean, little if that is near one half.
    if limits:
        with pytest.raises(AssertionError, match=r"do not follow its log_density|not normalized"):
            check_noise(Twin(wider, ours), space(d), seed=SEED)
    with pytest.raises(AssertionError, match="not normalized"):
        check_noise(Twin(ours, ours, 1.2), space(d), seed=SEED)


@SMOOTH
def test_kernel_densities_integrate_to_one(space, data, limits):
    line = noise.KernelDensity.match(data(1), space(1))
    total = integrate.quad(lambda x: density_at(line, [x])[0], *limits, limit=400)[0]
    assert total == pytest.approx(1, abs=1e-7)
    plane = noise.KernelDensity.match(data(2), space(2))
    # The folded and the cut ones end in a jump, where the midpoint rule is still of second order.
    assert integral_on_a_grid(plane, limits) == pytest.approx(1, abs=1e-4)


@COLUMNS
def test_binary_kernels_sum_to_one(d):
    cube = np.array(list(itertools.product([0.0, 1.0], repeat=d)))
    ours = noise.KernelDensity.match(SPACES["binary"][1](d), Binary(d))
    assert np.exp(ours.log_density(cube)).sum() == pytest.approx(1)


@pytest.mark.parametrize("width", [0.02, 0.3, 1.0, 1e6])
@pytest.mark.parametrize("center", [-1.0, 0.3, 2.0])
def test_kernels_of_any_width_are_normalized_on_the_box(width, center):
    ours = noise.KernelDensity([[center]], width, Box(-1, 2))
    total = integrate.quad(
        lambda x: density_at(ours, [x])[0], -1, 2, limit=400, points=[np.clip(center, -0.9, 1.9)]
    )[0]
    assert total == pytest.approx(1, abs=1e-7)
    draws = ours.sample(1000, rng())
    assert np.isfinite(ours.log_density(draws)).all()


def kernel(space, x, p, h):
    """One kernel in one column, written out."""
    normal = stats.norm(p, h)
    if isinstance(space, Reals):
        return normal.pdf(x)
    if isinstance(space, Torus):
        return stats.vonmises(1 / h**2, p).pdf(x)
    if isinstance(space, Orthant):
        return normal.pdf(x) + normal.pdf(-x)
    if isinstance(space, Box):
        return normal.pdf(x) / (normal.cdf(2) - normal.cdf(-1))
    return 1 - h if x == p else h


@EVERY
def test_kernel_densities_are_those_of_a_plain_loop(space, data, limits):
    points, h = data(2)[:6], (0.4, 0.25)
    ours = noise.KernelDensity(points, h, space(2))
    x = ours.sample(20, rng())
    expected = [
        np.mean(
            [
                math.prod(kernel(space(2), *each) for each in zip(at, p, h, strict=True))
                for p in points
            ]
        )
        for at in x
    ]
    assert density_at(ours, *x.T) == pytest.approx(np.array(expected), rel=1e-9)


def test_kernels_with_a_covariance_are_normals_around_the_points():
    points, matrix = dependent(2, 9), np.array([[0.5, 0.2], [0.2, 0.3]])
    ours = noise.KernelDensity(points, matrix, Reals(2))
    x = dependent(2, 30)[9:]
    expected = np.mean([stats.multivariate_normal(p, matrix).pdf(x) for p in points], axis=0)
    assert density_at(ours, *x.T) == pytest.approx(expected)


def test_the_bandwidth_of_reals_is_scotts():
    data = dependent(3, 60)
    one = noise.KernelDensity.match(data[:, 0])
    assert one.log_density(data[:, :1]) == pytest.approx(
        stats.gaussian_kde(data[:, 0]).logpdf(data[:, 0])
    )
    three = noise.KernelDensity.match(data)
    shrunk = noise.Normal.match(data).covariance
    assert three.bandwidth == pytest.approx(shrunk * 60 ** (-2 / 7))
    assert stats.gaussian_kde(data.T).covariance == pytest.approx(three.bandwidth, abs=0.05)


def test_the_bandwidth_of_angles_lies_between_its_limits():
    even = np.linspace(0, TURN, 100, endpoint=False)
    narrow = 3 + 0.1 * rng().standard_normal(100)
    found = noise.KernelDensity.match(np.column_stack([even, narrow, np.full(100, 2.0)]), Torus(3))
    factor = 100 ** (-1 / 7)
    assert found.bandwidth[0] == pytest.approx(factor * math.pi / math.sqrt(3))
    assert found.bandwidth[1] == pytest.approx(factor * narrow.std(), rel=0.01)
    assert found.bandwidth[2] == 1e-3
    check_noise(noise.KernelDensity.match(even, Torus(1)), Torus(1), seed=SEED)


def test_the_other_bandwidths_are_the_documented_ones():
    data = np.abs(dependent(2, 50))
    scott = data.std(axis=0, ddof=1) * 50 ** (-1 / 6)
    assert noise.KernelDensity.match(data, Orthant(2)).bandwidth == pytest.approx(scott)
    inside = Box((0, 0), (9, 9))
    assert noise.KernelDensity.match(data, inside).bandwidth == pytest.approx(scott)
    flips = noise.KernelDensity.match(data > 1, Binary(2)).bandwidth
    assert flips == pytest.approx([50 ** (-1 / 3) / 2] * 2)


def test_a_given_bandwidth_is_used_and_one_number_serves_all_columns():
    data = dependent(2, 20)
    one, two = (noise.KernelDensity.match(data, bandwidth=h) for h in (0.3, (0.3, 0.3)))
    assert np.array_equal(one.log_density(data), two.log_density(data))


def test_many_rows_are_thinned_evenly():
    data = np.arange(5001.0)
    found = noise.KernelDensity.match(data)
    assert len(found.points) == 2000
    assert (found.points[0], found.points[-1]) == (0, 5000)
    assert set(np.diff(found.points[:, 0])) == {2, 3}
    fewer = noise.KernelDensity.match(data, most=11)
    assert np.array_equal(fewer.points[:, 0], np.arange(0, 5001, 500))
    assert fewer.bandwidth == pytest.approx(data.std(ddof=1) * 11**-0.2)


def test_chunks_do_not_show(monkeypatch):
    ours = noise.KernelDensity.match(dependent(2))
    x = ours.sample(50, rng())
    whole = ours.log_density(x)
    monkeypatch.setattr(kernels, "CHUNK", 7 * 80)
    assert ours.log_density(x) == pytest.approx(whole, rel=1e-14)
    monkeypatch.setattr(kernels, "CHUNK", 1)
    assert ours.log_density(x) == pytest.approx(whole, rel=1e-14)


@EVERY
def test_fitted_densities_vanish_outside_the_space_and_far_away(space, data, limits):
    ours = noise.KernelDensity.match(data(1), space(1))
    nowhere = np.array([[-math.inf], [math.nan], [math.inf]])
    assert (ours.log_density(nowhere) == -math.inf).all()
    outside = np.array([[-3.5]])
    if math.isfinite(ours.log_density(outside)[0]):
        assert isinstance(space(1), Reals)
        assert -1e11 < ours.log_density(np.array([[1e5]]))[0] < -1e6
        assert ours.log_density(np.array([[1e200]]))[0] == -math.inf
    else:
        assert noise.margins(data(1), space(1)).log_density(outside)[0] == -math.inf


@EVERY
@COLUMNS
def test_draws_of_margins_follow_their_density_and_a_twin_does_not(space, data, limits, d):
    ours = noise.margins(data(d), space(d))
    assert ours.dimension == d
    assert np.isfinite(ours.log_density(data(d))).all()
    assert np.array_equal(pickle.loads(pickle.dumps(ours)).sample(5, rng()), ours.sample(5, rng()))
    check_noise(ours, space(d), seed=SEED)
    with pytest.raises(AssertionError, match=r"do not follow its log_density|not normalized"):
        check_noise(Twin(ours, ours, 1.2), space(d), seed=SEED)
    other = noise.margins(data(d)[: len(data(d)) // 2] * 0.5, space(d)) if limits else None
    if other is not None:
        with pytest.raises(AssertionError, match=r"do not follow its log_density|not normalized"):
            check_noise(Twin(other, ours), space(d), seed=SEED)


@SMOOTH
def test_margins_integrate_to_one_and_are_close_to_their_kernels(space, data, limits):
    ours = noise.margins(data(1), space(1))
    table, broad = ours.parts[0].parts
    # The midpoint rule is exact for a density linear between the knots.
    middle, width = (table.knots[1:] + table.knots[:-1]) / 2, np.diff(table.knots)
    assert density_at(table, middle) @ width == pytest.approx(1, rel=1e-12)
    assert limits[0] <= table.knots[0]
    assert table.knots[-1] <= limits[1]
    x = data(1)
    mixed = 0.95 * density_at(table, x) + 0.05 * density_at(broad, x)
    assert density_at(ours, x) == pytest.approx(mixed)
    plain = noise.KernelDensity.match(x, space(1))
    assert table.log_density(x) == pytest.approx(plain.log_density(x), abs=0.02)


def test_margins_are_independent_columns_in_order():
    data = np.column_stack([dependent(1), 50 + dependent(1)])
    ours = noise.margins(data, Reals(2))
    alone = [noise.margins(column, Reals(1)) for column in data.T]
    terms = [one.log_density(column[:, None]) for one, column in zip(alone, data.T, strict=True)]
    assert ours.log_density(data) == pytest.approx(sum(terms))
    zeros = noise.margins(SPACES["binary"][1](2), Binary(2))
    assert [type(part) for part in zeros.parts] == [noise.Bernoulli] * 2
    boxes = noise.margins([[0, 10], [1, 12], [0.5, 14]], Box((0, 10), (1, 20)))
    assert np.isfinite(boxes.log_density(np.array([[0.0, 10.0], [1.0, 20.0]]))).all()


def test_margins_cover_outliers_and_the_ends():
    far = noise.margins(dependent(1), Reals(1)).log_density(np.array([[40.0]]))[0]
    assert far > noise.StudentT.match(dependent(1)).log_density(np.array([[40.0]]))[0] + math.log(
        0.0499
    )
    turn = noise.margins(3 + 1e-4 * dependent(1), Torus(1))
    ends = np.array([[0.0], [np.nextafter(TURN, 0)]])
    assert turn.log_density(ends) == pytest.approx(math.log(0.05 / TURN), abs=1e-6)
    zero = noise.margins([0.0, 1.0, 2.0], Orthant(1))
    assert np.isfinite(zero.log_density(np.array([[0.0]]))).all()


def test_a_table_is_the_density_it_says_and_its_draws_follow_it():
    ours = noise.Tabulated((0.0, 1.0, 3.0, 4.0, 5.0), (0.0, 2.0, 0.0, 0.0, 1.0))
    # Triangles of areas 1, 2 and 1/2.
    x = np.array([[0.0], [0.25], [1.0], [2.0], [3.5], [4.5], [5.0], [5.1], [-0.1], [math.nan]])
    expected = np.array([0, 0.5, 2, 1, 0, 0.5, 1, 0, 0, 0]) / 3.5
    assert density_at(ours, x) == pytest.approx(expected)
    inside = Box(0, 5)
    check_noise(ours, inside, seed=SEED)
    neighbour = noise.Tabulated(ours.knots, (0.0, 2.0, 0.0, 0.0, 2.0))
    with pytest.raises(AssertionError, match="do not follow"):
        check_noise(Twin(neighbour, ours), inside, seed=SEED)
    flat = noise.Tabulated((0, 1), (3e-200, 3e-200))
    assert flat.log_density(np.array([[0.5]]))[0] == pytest.approx(0)
    assert np.isfinite(flat.sample(9, rng())).all()


def clouds():
    """Three groups far apart, in two columns of very different scales."""
    z = rng().standard_normal((600, 2)) * [1, 0.5]
    centers = np.repeat([[0, 0], [12, 0], [0, 12]], 200, axis=0)
    return (z + centers) * [1, 1e-6]


def test_a_gaussian_mixture_finds_the_groups():
    found = noise.gaussian_mixture(clouds())
    assert isinstance(found, noise.Mixture)
    assert np.sort(found.weights) == pytest.approx([1 / 3] * 3, abs=0.01)
    unit = np.array([1, 1e-6])
    for part in found.parts:
        near = int(np.argmin(np.abs((clouds()[::200] - part.mean) / unit).sum(axis=1)))
        rows = clouds()[200 * near : 200 * (near + 1)]
        assert part.mean / unit == pytest.approx(rows.mean(axis=0) / unit, abs=1e-2)
        variances = np.diag(part.covariance) - 1e-3 * clouds().var(axis=0)
        assert variances == pytest.approx(rows.var(axis=0), rel=0.02)
    assert len(noise.gaussian_mixture(clouds(), components=2).parts) == 2
    assert len(noise.gaussian_mixture(clouds(), most=2).parts) == 2
    assert len(noise.gaussian_mixture(clouds()[:4]).parts) == 1


@COLUMNS
def test_draws_of_a_gaussian_mixture_follow_its_density_and_a_twin_does_not(d):
    data = np.vstack([dependent(d), 3 + dependent(d)])
    ours = noise.gaussian_mixture(data)
    again = noise.gaussian_mixture(data)
    assert np.array_equal(ours.sample(9, rng()), again.sample(9, rng()))
    check_noise(ours, Reals(d), seed=SEED)
    # In five columns the reference of the check meets few draws, and a factor shows only if large.
    wider = [noise.Normal(part.mean, 2 * part.covariance) for part in ours.parts]
    other = noise.Mixture(wider, ours.weights)
    for twin in (Twin(other, ours), Twin(ours, ours, 1.2 if d < 5 else 3.0)):
        with pytest.raises(AssertionError, match=r"do not follow its log_density|not normalized"):
            check_noise(twin, Reals(d), seed=SEED)


def test_a_gaussian_mixture_survives_few_distinct_rows_without_a_warning():
    data = np.array([[0.0, 1.0], [1.0, 0.0]] * 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = noise.gaussian_mixture(data, components=5)
    assert np.isfinite(found.log_density(data)).all()
    assert sum(found.weights) == pytest.approx(1)


TABLE = np.array([[0.5, 0.25], [0.75, 0.25], [1.0, 0.25]])
LOST = np.array([[0.5], [math.nan]])
KNOWN = r"knows the spaces Reals, Torus, Orthant, Box,? (and )?Binary .* such as .*, got"
match = noise.KernelDensity.match


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: match(TABLE, Torus(3)), r"3 columns \(KernelDensity.match on Torus.*got shape"),
        (lambda: match(TABLE), r"got a constant column 1 .* value 0.25: drop this column or"),
        (lambda: match(TABLE, Orthant(2)), "data must vary .* constant column 1"),
        (lambda: match(TABLE, Box((0, 0), (1, 1))), "data must vary .* constant column 1"),
        (lambda: match([[1.0]]), "data must have at least 2 rows"),
        (lambda: match(LOST), "data must be finite numbers, got missing .* row 1"),
        (lambda: match(-TABLE, Orthant(2)), "data must be zero or positive, got 6 such"),
        (lambda: match(TABLE, Binary(2)), "data must be 0 or 1, got"),
        (lambda: match(TABLE[:, 0], most=0), r"most=...\) must be a whole number of .*, got 0$"),
        (lambda: match(TABLE[:, 0], most=2.5), r"at least 1, the most kernels, got 2.5$"),
        (lambda: match(TABLE, bandwidth=0), r"finite numbers above 0, got bandwidth=\[0.0\]"),
        (lambda: match(TABLE, bandwidth=(1, -1)), r"above 0, got bandwidth=\[1.0, -1.0\]"),
        (lambda: match(TABLE, bandwidth=math.inf), r"finite numbers above 0, got .*inf"),
        (lambda: match(TABLE, bandwidth="a"), "bandwidth=...\\) must be a number or an array"),
        (lambda: match(TABLE, bandwidth=(1, 1, 1)), "one for each of the 2 columns, got 3$"),
        (lambda: match(TABLE, bandwidth=-np.eye(2)), "positive definite bandwidth, got .* -1$"),
        (lambda: match(TABLE, bandwidth=np.eye(3)), r"a bandwidth of shape \(d, d\), got"),
        (lambda: match(TABLE, Torus(2), np.eye(2)), r"one bandwidth for each column, got shapes"),
        (lambda: match(TABLE, Torus(2), 1e-4), r"from 0.001 up, got bandwidth=\[0.0001\]"),
        (lambda: match(TABLE > 0.6, Binary(2), 0.6), r"above 0 to 0.5, got bandwidth=\[0.6\]"),
        (lambda: match(TABLE, "torus"), f"^KernelDensity {KNOWN} 'torus'$"),
        (lambda: match(TABLE, Torus), f"^KernelDensity {KNOWN} the class Torus$"),
        (lambda: noise.KernelDensity([[3.0]], 1, Box(0, 1)), "data must lie in the box, got"),
        (lambda: noise.margins(TABLE, Reals(3)), r"3 columns \(margins on Reals\(dimension=3\)\)"),
        (lambda: noise.margins(TABLE, Reals(2)), "got a constant column 1 .* drop this column"),
        (lambda: noise.margins(TABLE, Box((0, 0), (1, 1))), "got a constant column 1"),
        (lambda: noise.margins([1.0], Orthant(1)), "data must have at least 2 rows"),
        (lambda: noise.margins(LOST, Torus(1)), "data must be finite numbers, got missing"),
        (lambda: noise.margins(TABLE, 2), rf"^margins\(data, space\) {KNOWN} 2$"),
        (lambda: noise.gaussian_mixture(TABLE), "data must vary .* constant column 1"),
        (lambda: noise.gaussian_mixture(LOST), "data must be finite numbers, got missing"),
        (lambda: noise.gaussian_mixture([[1.0]]), "data must have at least 2 rows"),
        (
            lambda: noise.gaussian_mixture([1, 2], components=3),
            "1 and at most 2, the rows .* got 3",
        ),
        (lambda: noise.gaussian_mixture([1, 2], components=0), "must be a whole number .*, got 0$"),
        (lambda: noise.gaussian_mixture([1, 2], most="5"), "most=...\\) must be .*, got '5'$"),
        (lambda: noise.Tabulated((0, 1), (1, -1)), r"heights from 0 up and not all 0, got knots"),
        (
            lambda: noise.Tabulated((0, 1), (0, 0)),
            r"two or more rising knots.*heights=\[0.0, 0.0\]",
        ),
        (lambda: noise.Tabulated((1, 0), (1, 1)), r"rising knots, .* got knots=\[1.0, 0.0\]"),
        (lambda: noise.Tabulated(0, 1), "at two or more rising knots"),
        (lambda: noise.Tabulated((0, 1), (1, 1, 1)), "one knots and one heights for each column"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250

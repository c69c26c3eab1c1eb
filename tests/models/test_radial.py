"""The radial basis: its formula by hand, centers and bandwidth from data, and what it refuses."""

import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

import ncbayes as ncb
from ncbayes.base import shown
from ncbayes.models import RadialBasis, radial
from ncbayes.spaces import Binary, Box, Counts, Graphs, GraphSets, Orthant, Reals, Region, Torus
from ncbayes.testing import check_model

CENTERS = np.array([[0.5, 0.5], [2.0, 1.0], [3.0, 2.5]])
BOX = Box((0, 0), (4, 3))


class OwnSpace:
    """A bounded space with the members that are asked for, and those given."""

    dimension, log_volume = 2, 1.0

    def __init__(self, **said):
        vars(self).update(said)

    def check(self, points, columns):
        return points

    def contains(self, points):
        return np.ones(len(points), dtype=bool)

    def uniform(self, size, rng):
        return rng.random((size, 2))


SHAPE = {"exponential": lambda r: math.exp(-r), "gaussian": lambda r: math.exp(-r * r / 2)}


@pytest.mark.parametrize("kernel", SHAPE)
def test_statistics_are_the_formula(kernel, seed):
    x = BOX.uniform(5, np.random.default_rng(seed))
    found = RadialBasis(CENTERS, 0.8, BOX, kernel=kernel).statistics(x)
    for row, point in zip(found, x, strict=True):
        for value, (a, b) in zip(row, CENTERS, strict=True):
            distance = math.sqrt((point[0] - a) ** 2 + (point[1] - b) ** 2)
            assert value == pytest.approx(SHAPE[kernel](distance / 0.8), rel=1e-12)


@pytest.mark.parametrize("kernel", SHAPE)
@pytest.mark.parametrize("dimension", [1, 3, 6])
def test_any_number_of_columns(kernel, dimension, seed):
    rng = np.random.default_rng(seed)
    centers, x = rng.uniform(size=(4, dimension)), rng.uniform(size=(7, dimension))
    model = RadialBasis(centers, 0.3, Box([0] * dimension, [1] * dimension), kernel)
    wanted = np.vectorize(SHAPE[kernel])(cdist(x, centers) / 0.3)
    np.testing.assert_allclose(model.statistics(x), wanted, rtol=1e-10)


@pytest.mark.parametrize("entries", [1, 6, 20])
def test_pieces_change_nothing(entries, seed, monkeypatch):
    x, model = BOX.uniform(11, np.random.default_rng(seed)), RadialBasis(CENTERS, 0.8, BOX)
    whole = model.statistics(x)
    monkeypatch.setattr(radial, "CHUNK", entries)
    np.testing.assert_array_equal(model.statistics(x), whole)
    assert model.statistics(x[:0]).shape == (0, 3)


def test_names_and_base():
    model = RadialBasis(CENTERS.tolist(), 0.8, BOX)
    assert model.groups == {"basis": ("basis1", "basis2", "basis3")}
    assert model.log_base(np.zeros((4, 2))).tolist() == [0] * 4
    assert repr(model) == "RadialBasis(3 centers, bandwidth=0.8)"
    assert model.kernel == "exponential"


@pytest.mark.parametrize("kernel", SHAPE)
def test_it_passes_the_check_of_models(kernel, seed):
    region = Region.of([[0, 0], [4, 0], [4, 3]])
    for space in (BOX, region):
        check_model(RadialBasis(CENTERS, 0.8, space, kernel), seed=seed)


@dataclass(frozen=True, eq=False)
class Relative(RadialBasis):
    """Measures distances by those of the other points."""

    def statistics(self, x):
        found = super().statistics(x)
        return found / found.max(axis=0)


def test_the_check_of_models_rejects_a_broken_twin(seed):
    with pytest.raises(AssertionError, match="among other points"):
        check_model(Relative(CENTERS, 0.8, BOX), seed=seed)


@pytest.mark.parametrize(("kernel", "factor"), [("exponential", 1.5), ("gaussian", 0.5)])
def test_the_bandwidth_is_a_share_of_the_median_distance(kernel, factor, seed):
    points = BOX.uniform(80, np.random.default_rng(seed))
    model = RadialBasis.match(points, BOX, 7, kernel=kernel)
    assert model.bandwidth == pytest.approx(factor * np.median(pdist(model.table)), rel=1e-12)
    assert RadialBasis.match(points, BOX, 7, 0.4).bandwidth == 0.4


def test_centers_are_means_of_the_points_nearest_to_them(seed):
    points = BOX.uniform(200, np.random.default_rng(seed))
    centers = RadialBasis.match(points, BOX, 6).table
    assert centers.shape == (6, 2)
    nearest = cdist(points, centers).argmin(axis=1)
    # k-means stops when centers move by less than a ten-thousandth of the variance.
    for k, center in enumerate(centers):
        np.testing.assert_allclose(points[nearest == k].mean(axis=0), center, atol=0.1)


def test_the_same_points_have_the_same_centers(seed):
    points = BOX.uniform(200, np.random.default_rng(seed))
    first, again = (RadialBasis.match(points.copy(), BOX, 6).table for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(RadialBasis.match(points, BOX).table) == 30


def test_there_are_no_more_centers_than_different_points(monkeypatch):
    points = np.repeat([[0.0, 1.0], [2.0, 1.0], [2.0, 3.0]], 20, axis=0)
    found = RadialBasis.match(points, BOX, 8).table
    np.testing.assert_allclose(found, [[0, 1], [2, 1], [2, 3]], atol=1e-12)
    # Where only some of the rows are clustered, those count.
    monkeypatch.setattr(radial, "MOST_CLUSTERED", 2)
    found = RadialBasis.match(points, BOX, 8).table
    np.testing.assert_allclose(found, [[0, 1], [2, 3]], atol=1e-12)


def test_centers_of_many_rows_are_those_of_some(monkeypatch, seed):
    points = BOX.uniform(300, np.random.default_rng(seed))
    monkeypatch.setattr(radial, "MOST_CLUSTERED", 100)
    chosen = points[np.linspace(0, 299, 100).astype(int)]
    some = RadialBasis.match(chosen, BOX, 5).table
    np.testing.assert_array_equal(RadialBasis.match(points, BOX, 5).table, some)


def test_points_far_beyond_the_bandwidth_are_at_zero():
    model = RadialBasis([[0.0], [1.0]], 1e-100, Box([0], [1e100]))
    assert model.statistics(np.array([[0.0], [1e100]])).tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("kernel", ["box", None, 3, ["gaussian"], np.array(["gaussian", "x"])])
def test_kernels_are_two(kernel):
    message = r'RadialBasis\(kernel=...\) must be "exponential" or "gaussian", got '
    with pytest.raises(ncb.InputError, match=message + re.escape(shown(kernel))):
        RadialBasis(CENTERS, 1.0, BOX, kernel)
    with pytest.raises(ncb.InputError, match=message):
        RadialBasis.match(CENTERS, BOX, kernel=kernel)


@pytest.mark.parametrize(
    "space",
    [
        Reals(2),
        Orthant(2),
        Torus(2),
        Binary(2),
        Counts(2, most=3),
        Graphs(3),
        GraphSets((Graphs(3), Graphs(4))),
        OwnSpace(continuous=False),
        OwnSpace(periodic=True),
        Box,
        "gaussian",
        None,
    ],
)
def test_spaces_are_bounded_and_of_real_coordinates(space):
    message = (
        r"^RadialBasis\(space=...\) must be a bounded space of real coordinates, such as "
        rf".*Box\(\(0, 0\), \(1, 1\)\), got {re.escape(shown(space))}; far from all centers"
    )
    for ask in (
        lambda: RadialBasis(CENTERS, 1.0, space),
        lambda: RadialBasis.match(CENTERS, space),
    ):
        with pytest.raises(ncb.InputError, match=message):
            ask()


def test_a_space_of_the_users_own_counts_as_continuous_unless_it_says_otherwise():
    assert RadialBasis(CENTERS, 1.0, OwnSpace()).space.dimension == 2
    assert RadialBasis(CENTERS, 1.0, OwnSpace(continuous=True)).space.dimension == 2


@pytest.mark.parametrize(
    "bandwidth", [0, -1, math.nan, math.inf, "wide", [1.0], None, True, 1e-320, 1e300]
)
def test_a_bandwidth_is_a_positive_number(bandwidth):
    message = (
        r"^RadialBasis\(bandwidth=...\) must be a positive number, a distance in the units of the "
        rf"points between 1e-100 and 1e\+100, got {re.escape(shown(bandwidth))}$"
    )
    with pytest.raises(ncb.InputError, match=message):
        RadialBasis(CENTERS, bandwidth, BOX)


@pytest.mark.parametrize(
    ("centers", "message"),
    [
        ("here", r"\(centers=...\) must be a number or an array of numbers.*got 'here'"),
        ([], r"\(centers=...\) must be a number or an array of numbers.*got \[\]"),
        ([1.0, 2.0], r"a row for each center and 2 columns like its space, got shape \(2,\)"),
        (
            np.ones((2, 3)),
            r"a row for each center and 2 columns like its space, got shape \(2, 3\)",
        ),
        ([[0, 1], [0, 1]], "must be finite and differ from each other; leave out repeated rows"),
        ([[0, 1], [0, math.nan]], "must be finite and differ from each other"),
    ],
)
def test_centers_are_a_table_of_different_points(centers, message):
    with pytest.raises(ncb.InputError, match=message):
        RadialBasis(centers, 1.0, BOX)


@pytest.mark.parametrize("basis", [1, 0, -3, 2.5, "many", True, None])
def test_the_number_of_functions_is_whole_and_two_or_more(basis):
    with pytest.raises(
        ncb.InputError,
        match=r"^RadialBasis.match\(basis=...\) must be a whole number of at least 2, got "
        + re.escape(shown(basis)),
    ):
        RadialBasis.match(CENTERS, BOX, basis)


def test_a_match_needs_points_that_differ_and_lie_in_the_space():
    with pytest.raises(ncb.InputError, match="at least 2 different points, got 1; give the cent"):
        RadialBasis.match(np.ones((9, 2)), BOX)
    with pytest.raises(ncb.InputError, match="data must lie in the box"):
        RadialBasis.match(CENTERS + 9, BOX)
    with pytest.raises(ncb.InputError, match=r"must have 2 columns \(RadialBasis.match\)"):
        RadialBasis.match(np.ones((9, 3)), BOX)


def test_centers_do_not_depend_on_the_number_of_threads():
    """In processes of their own, because what is loaded later escapes a limit set before."""
    code = (
        "import numpy as np; from ncbayes.models.radial import k_means; "
        "print(k_means(np.random.default_rng(1).normal(size=(2000, 2)), 30).tobytes().hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "3")
    }
    assert len(found) == 1

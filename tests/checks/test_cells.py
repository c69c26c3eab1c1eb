"""Counts of points in cells of a density: shares that sum to one, and points that are elsewhere."""

import warnings

import numpy as np
import pytest
from scipy.spatial import cKDTree

import ncbayes as ncb
from ncbayes.checks.cells import ALL_TIMES, Masses, cell_counts
from ncbayes.fields import Field, stored_field

SHORT = {"draws": 200, "tune": 200, "chains": 2, "cores": 1, "seed": 1, "progress": False}


def fitted(points, times, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit_density_over_time(points, times, basis=12, **{**SHORT, **options})


@pytest.fixture(scope="module")
def smooth():
    rng = np.random.default_rng(1)
    return fitted(rng.normal(size=(300, 2)), np.repeat([1, 2, 3], 100))


def worst(posterior, seed=0):
    found = cell_counts(
        posterior.data, stored_field(posterior.data, "test"), np.random.default_rng(seed)
    )
    return {label: each.compared[0][1].p_value for label, each in found.items()}


def test_cells_hold_all_of_the_mass(smooth):
    field = stored_field(smooth.data, "test")
    theta = smooth.theta.to_numpy().reshape(-1, 3, 12)[:5]
    masses = Masses.of(field, theta)
    np.testing.assert_allclose(masses.mass.sum(axis=-1), 1)
    centers = masses.centers(np.array([100.0, 100.0, 100.0]), np.random.default_rng(1))
    for cells in (masses.cells(field.model.table, 4), masses.cells(centers, 1)):
        np.testing.assert_allclose(cells.shares.sum(axis=-1), 1)
        assert cells.counts(masses.points).min() >= 1
    points = smooth.data["observed_data"]["points"].to_numpy()
    assert cells.counts(points).sum() == 300


def test_points_of_a_smooth_density_raise_no_alarm(smooth):
    found = worst(smooth)
    assert list(found) == ["1", "2", "3", ALL_TIMES]
    assert min(found.values()) > 0.002
    assert smooth.verdict().of("predictions")[0].grade == "good"


def test_points_that_are_not_where_the_density_is_are_noticed(smooth):
    moved = ncb.Posterior(smooth.data.copy(deep=True))
    points = moved.data["observed_data"]["points"]
    points.values[:100] = points.values[0]
    found = worst(moved)
    assert found["1"] < 0.001
    assert found["2"] > 0.001
    assert found[ALL_TIMES] < 0.001


def test_crowds_that_the_basis_cannot_follow_are_told():
    rng = np.random.default_rng(1)
    places = rng.uniform(-2, 2, (30, 2))
    crowded = places[rng.integers(0, 30, 300)] + 0.01 * rng.normal(size=(300, 2))
    posterior = fitted(crowded, np.repeat([1, 2, 3], 100))
    (concern,) = posterior.verdict().of("predictions")
    assert concern.grade == "poor"
    assert "over all times: points crowd in places that are smaller" in concern.line


def test_a_density_at_one_time_has_both_kinds_of_cells():
    rng = np.random.default_rng(2)
    space = ncb.spaces.Box([-3.0], [3.0])
    points = np.clip(rng.normal(size=(200, 1)), -2.9, 2.9)
    model = ncb.models.RadialBasis.match(points, space, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(model, points, noise=ncb.noise.Uniform(space), **SHORT)
    stored = posterior.data["verification"].to_dataset()
    assert stored["look_name"].values.tolist() == ["points in cells", "points in fine cells"]
    assert set(stored["look_group"].values) == {"all"}


OUTLINE = ncb.spaces.Region.of([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.3, 1.7]])


@pytest.mark.parametrize(
    "space", [ncb.spaces.Box([0.0], [1.0]), ncb.spaces.Box([0.0, 0.0], [1.0, 2.0]), OUTLINE]
)
def test_fine_cells_hold_the_points_that_are_expected(space, seed):
    """Even ground, 300 cells: on a line each has a bin or two, whose borders points must share."""
    rng = np.random.default_rng(seed)
    model = ncb.models.RadialBasis.match(space.uniform(500, rng), space, 8)
    masses = Masses.of(Field(model), np.zeros((1, 1, 8)))
    cells = masses.cells(masses.centers(np.array([2000.0]), rng), 1)
    points = space.uniform(200_000, rng)

    def worst(counts):
        expected = len(points) * cells.shares[0, 0]
        return float((np.abs(counts - expected) / np.sqrt(expected)).max())

    assert worst(cells.counts(points)) < 6
    by_centers = np.bincount(cKDTree(cells.centers).query(points)[1], minlength=len(cells.centers))
    assert worst(by_centers) > 8

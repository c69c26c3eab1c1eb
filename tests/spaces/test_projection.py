"""Degrees and km: round trips, areas, and the distortion that the docstring states."""

import math

import numpy as np
import pandas as pd
import pytest

from ncbayes.base import InputError
from ncbayes.spaces import Projection, Region

RADIUS = 6371.0088
CENTERS = [(0.0, 0.0), (-77.0, 38.9), (179.9, -41.3), (-180.0, 60.0), (200.0, 85.0), (10.0, -85.0)]
EACH = pytest.mark.parametrize("center", CENTERS, ids=str)


@EACH
def test_there_and_back_is_the_identity(center, seed):
    rng = np.random.default_rng(seed)
    degrees = np.column_stack([rng.uniform(-180, 180, 500), rng.uniform(-89, 89, 500)])
    projection = Projection(*center)
    assert projection.inverse(projection.forward(degrees)) == pytest.approx(degrees, abs=1e-8)


@EACH
def test_back_and_there_is_the_identity(center, seed):
    km = np.random.default_rng(seed).uniform(-20, 20, (500, 2))
    projection = Projection(*center)
    assert projection.forward(projection.inverse(km)) == pytest.approx(km, abs=1e-7)


@EACH
def test_the_center_is_the_origin_and_its_parallel_has_true_lengths(center):
    projection = Projection(*center)
    km = projection.forward([center, (center[0] + 0.01, center[1])])
    assert km[0] == pytest.approx([0, 0], abs=1e-9)
    around = 2 * math.pi * RADIUS * math.cos(math.radians(center[1]))
    assert km[1] == pytest.approx([around * 0.01 / 360, 0], abs=1e-9)


def areas(forward, degrees, step=1e-4):
    """The area element by central differences, in km^2 for a square degree."""
    east, north = np.array([step, 0.0]), np.array([0.0, step])
    a = (forward(degrees + east) - forward(degrees - east)) / (2 * step)
    b = (forward(degrees + north) - forward(degrees - north)) / (2 * step)
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


@EACH
def test_areas_are_those_of_the_sphere(center, seed):
    rng = np.random.default_rng(seed)
    degrees = np.column_stack([center[0] + rng.uniform(-150, 150, 200), rng.uniform(-85, 85, 200)])
    sphere = (RADIUS * math.pi / 180) ** 2 * np.cos(np.radians(degrees[:, 1]))
    assert areas(Projection(*center).forward, degrees) == pytest.approx(sphere, rel=1e-6)

    def plain(points):
        """Without the sine: equirectangular, not equal-area."""
        scale = [math.cos(math.radians(center[1])), 1.0]
        return (points - center) * scale * RADIUS * math.pi / 180

    assert areas(plain, degrees) != pytest.approx(sphere, rel=1e-2)


def test_a_box_of_degrees_has_the_area_of_a_zone():
    corners = np.array([[-78.0, 38.0], [-76.0, 38.0], [-76.0, 40.0], [-78.0, 40.0]])
    region = Region.of(Projection.around(corners).forward(corners))
    zone = math.sin(math.radians(40)) - math.sin(math.radians(38))
    expected = RADIUS**2 * math.radians(2) * zone
    assert math.exp(region.log_volume) == pytest.approx(expected, rel=1e-12)


def test_the_stated_distortions_are_true():
    a, f = 6378.137, 1 / 298.257223563
    square = f * (2 - f)

    def off(latitude):
        """How much larger areas of the ellipsoid are than those of the sphere."""
        sine = math.sin(math.radians(latitude))
        return a**2 * (1 - square) / (1 - square * sine**2) ** 2 / RADIUS**2 - 1

    assert max(abs(off(latitude)) for latitude in range(56)) < 0.005
    assert 0.008 < abs(off(90)) < 0.0095
    projection, step = Projection(0.0, 40.0), 1e-3
    for away, percent in ((0.1, 0.15), (1.0, 1.5)):
        latitude = 40.0 + away
        km = projection.forward([[0.0, latitude], [step, latitude], [0.0, latitude + step]])
        unit = RADIUS * math.radians(step)
        east = (km[1] - km[0])[0] / (unit * math.cos(math.radians(latitude)))
        north = (km[2] - km[0])[1] / unit
        assert 100 * (east - 1) == pytest.approx(percent, rel=0.05)
        assert 100 * (1 / north - 1) == pytest.approx(percent, rel=0.05)


def test_points_across_the_180th_meridian_stay_together():
    degrees = np.array([[179.0, -17.0], [-179.0, -18.0], [181.0, -17.5]])
    projection = Projection.around(degrees)
    assert abs(projection.longitude) == pytest.approx(180, abs=0.5)
    assert projection.latitude == -17.5
    km = projection.forward(degrees)
    assert np.ptp(km[:, 0]) < 220
    assert km[1, 0] == pytest.approx(km[2, 0])
    wrapped = [[179.0, -17.0], [-179.0, -18.0], [-179.0, -17.5]]
    assert projection.inverse(km) == pytest.approx(np.array(wrapped), abs=1e-9)


def test_the_center_is_the_circular_mean_and_the_middle_latitude():
    projection = Projection.around([[350.0, 10.0], [10.0, 50.0], [0.0, 12.0]])
    assert projection.longitude == pytest.approx(0, abs=1e-9)
    assert projection.latitude == 30.0


def test_poles_come_back_and_frames_are_taken():
    projection = Projection(20.0, 84.0)
    poles = [[20.0, 90.0], [20.0, -90.0]]
    assert projection.inverse(projection.forward(poles)) == pytest.approx(np.array(poles), abs=1e-5)
    frame = pd.DataFrame({"lon": [20.0], "lat": [84.0]})
    assert projection.forward(frame) == pytest.approx(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Projection.around([[38.9, -77.0], [38.9, -97.0]]),
            r"^latitudes must lie between -90 and 90 degrees, got -97 in row 1 \(counted from 0\): "
            "pass degrees, longitude in the first column and latitude in the second, and not "
            "swapped$",
        ),
        (lambda: Projection(0, 0).forward([[0.0, 90.5]]), "latitudes must lie .*, got 90.5 in row"),
        (lambda: Projection(0, 0).forward([[5e5, 4.0]]), "longitudes must lie between -360 and"),
        (lambda: Projection(0, 0).forward([[0.0, math.nan]]), "data must be finite numbers"),
        (lambda: Projection(0, 0).forward([[0.0]]), r"must have 2 columns \(Projection.forward\)"),
        (lambda: Projection(0, 0).inverse([1.0]), r"must have 2 columns \(Projection.inverse\)"),
        (
            lambda: Projection(0, 0).inverse([[0.0, 1.0], [0.0, 6400.0]]),
            "must lie between the poles, -6371.01 and 6371.01, got 6400 in row 1 .*: pass what",
        ),
        (
            lambda: Projection(0, 86),
            r"^Projection\(latitude=...\) must be a number of degrees between -85 and 85, got 86: "
            "nearer to a pole use a polar projection$",
        ),
        (lambda: Projection.around([[0.0, 88.0], [1.0, 89.0]]), "and 85, got 88.5: nearer to a"),
        (lambda: Projection(361, 0), r"Projection\(longitude=...\) must be .* 360, got 361$"),
        (lambda: Projection("a", 0), r"Projection\(longitude=...\) must be a number .* got 'a'$"),
        (lambda: Projection(math.nan, 0), r"longitude=...\) must be a number .* got nan$"),
    ],
)  # fmt: skip
def test_unusable_degrees_are_refused_in_plain_words(make, message):
    with pytest.raises(InputError, match=message):
        make()

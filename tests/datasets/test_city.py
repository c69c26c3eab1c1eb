import itertools
import math

import numpy as np
import pytest
from matplotlib.path import Path as Outline
from scipy.special import ndtri

from ncbayes.base import InputError
from ncbayes.datasets import city, incidents, load_crime

LIMIT = -ndtri(1e-6 / 2)


def km(points):
    return (np.asarray(points) - city.CENTER) * city.KM_A_DEGREE


def lattice():
    """All rounded places in the rectangle of the city."""
    ring = city._ring()
    low, high = np.floor(ring.min(axis=0) * 1000), np.ceil(ring.max(axis=0) * 1000)
    axes = [np.arange(a, b + 1) / 1000 for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def test_the_city_is_a_simple_polygon_of_18_km():
    ring = np.array(incidents(1, seed=1).outline["coordinates"][0])
    assert incidents(1, seed=1).outline["type"] == "Polygon"
    assert ring[0].tolist() == ring[-1].tolist()
    assert (np.ptp(km(ring), axis=0) > 15).all()
    assert (np.ptp(km(ring), axis=0) < 20).all()
    x, y = ring.T
    # GeoJSON wants the outer ring counterclockwise: its signed area is positive.
    assert np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) > 0
    sides = list(itertools.pairwise(ring))
    for (i, one), (j, other) in itertools.combinations(enumerate(sides), 2):
        if j - i > 1 and (i, j) != (0, len(sides) - 1):
            assert not crosses(*one, *other)


def crosses(a, b, c, d):
    def turn(p, q, r):
        return np.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return turn(a, b, c) != turn(a, b, d) and turn(c, d, a) != turn(c, d, b)


def test_no_rounded_place_is_on_the_border():
    """So that whoever tests for inside, in degrees or kilometres, finds all incidents there."""
    places, ring = lattice(), city._ring()
    for a, b in itertools.pairwise(ring):
        along = np.clip((places - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
        distance = np.linalg.norm(places - a - along[:, None] * (b - a), axis=1)
        assert distance.min() > 1e-7


def test_inside_is_what_matplotlib_calls_inside(seed):
    ring = city._ring()
    x = np.random.default_rng(seed).uniform(ring.min(axis=0), ring.max(axis=0), (5000, 2))
    held = city.inside(x, ring)
    assert np.array_equal(held, Outline(ring).contains_points(x))
    assert 0.5 < held.mean() < 0.9


def test_incidents_are_in_the_city_60_to_90_a_month_in_order(seed):
    found = incidents(seed=seed)
    assert city.inside(found.points.to_numpy(), city._ring()).all()
    months = found.times.dt.month.value_counts()
    assert len(months) == 12
    assert months.between(60, 90).all()
    assert found.times.is_monotonic_increasing
    assert found.times.dt.tz is None
    assert found.points.round(3).equals(found.points)
    # 60 of 915 with the seed 1, as anonymized places have.
    assert found.points.duplicated().sum() > 5
    assert len(found.points) == len(found.times) == len(found.kinds)


def test_a_seed_is_a_city_and_years_go_on():
    assert incidents(3, seed=5).points.equals(incidents(3, seed=5).points)
    assert not incidents(3, seed=5).points.equals(incidents(3, seed=6).points)
    assert incidents(14, seed=1).times.max() >= np.datetime64("2024-02-01")
    assert len(incidents(1, seed=1).times.dt.month.unique()) == 1


def test_one_hot_spot_moves_and_one_grows(seed):
    found = incidents(60, seed=seed)
    early = np.arange(len(found.points)) < len(found.points) / 2

    def z(place, radius):
        """The change of a place's share of incidents from the first to the second half."""
        held = np.hypot(*(km(found.points) - place).T) < radius
        error = math.sqrt(4 * held.mean() * (1 - held.mean()) / len(held))
        return (held[~early].mean() - held[early].mean()) / error

    assert z((-5.0, -2.5), 2.0) < -LIMIT
    assert z((-0.5, 4.5), 2.0) > LIMIT
    assert z((6.2, -0.9), 2.0) > LIMIT
    # The broken twin: the spot that stays as it is.
    assert abs(z((3.1, 4.2), 1.5)) < LIMIT


SPOTS = {
    0.0: {(3.1, 4.2): (0.3, 0.9), (-5.0, -2.5): (0.3, 0.8), (6.2, -0.9): (0.05, 0.7)},
    1.0: {(3.1, 4.2): (0.3, 0.9), (-0.5, 4.5): (0.3, 0.8), (6.2, -0.9): (0.3, 1.3)},
}


def law(s):
    """Probabilities of the rounded places: what each spot puts in the city, and the rest."""
    places = lattice()
    held = city.inside(places, city._ring())
    total = (1 - sum(share for share, _ in SPOTS[s].values())) * held / held.sum()
    for center, (share, sd) in SPOTS[s].items():
        mass = held * np.exp(-(((km(places) - center) / sd) ** 2).sum(axis=1) / 2)
        total += share * mass / mass.sum()
    return km(places), total


@pytest.mark.parametrize("s", [0.0, 1.0])
def test_a_month_has_the_law_that_it_says(s, seed):
    points = km(city._month(s, 40_000, np.random.default_rng(seed)))
    twin = km(city._month(1 - s, 40_000, np.random.default_rng(seed)))
    places, probabilities = law(s)
    worst = []
    for rows in (points, twin):
        z = []
        for (x, y), (_, sd) in SPOTS[s].items():
            expected = probabilities[np.hypot(places[:, 0] - x, places[:, 1] - y) < 1.5 * sd].sum()
            share = np.mean(np.hypot(rows[:, 0] - x, rows[:, 1] - y) < 1.5 * sd)
            z.append((share - expected) / math.sqrt(expected * (1 - expected) / len(rows)))
        worst.append(np.abs(z).max())
    # The broken twin is the other end of the year.
    assert worst[0] < -ndtri(1e-6 / 6) < worst[1]


def test_it_is_saved_in_the_portals_format(tmp_path, seed):
    found = incidents(2, seed=seed)
    found.save(tmp_path / "city.csv")
    again = load_crime(tmp_path / "city.csv")
    assert again.points.equals(found.points)
    assert again.times.equals(found.times)
    assert again.kinds.equals(found.kinds)
    assert again.outline is None


def test_months_that_are_none():
    with pytest.raises(InputError, match="months must be a whole number, 1 or more, got 0"):
        incidents(0)
    with pytest.raises(InputError, match="seed must be a whole number, 0 or more, or a generator"):
        incidents(2, seed="a")

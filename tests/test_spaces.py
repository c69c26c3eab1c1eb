import math
import os

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ncbayes.base import InputError, Space, shown
from ncbayes.spaces import (
    TWO_PI,
    Binary,
    Box,
    Orthant,
    Reals,
    Region,
    Torus,
    as_points,
    column_count,
    wrapped,
)

SEED = int(os.environ.get("NCBAYES_TEST_SEED", "1"))
SQUARE = Region.of([[0.0, -1.0], [2.0, -1.0], [2.0, 1.0], [0.0, 1.0]])
SPACES = [Torus(2), Box((0.0, -1.0), (2.0, 1.0)), SQUARE, Reals(2), Orthant(2), Binary(2)]
BOUNDED = [Torus(2), Box((0.0, -1.0), (2.0, 1.0)), SQUARE, Binary(2)]
TABLE = [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_space_fulfils_the_contract(space):
    assert isinstance(space, Space)
    assert space.dimension == 2
    assert space.contains(np.array([[1.0, 0.0], [np.nan, 0.0], [np.inf, 0.0]])).tolist() == [
        True,
        False,
        False,
    ]


def test_volumes_are_exact():
    assert Torus(3).log_volume == pytest.approx(3 * math.log(2 * math.pi))
    assert Box((0, -1), (2, 2)).log_volume == pytest.approx(math.log(6))
    assert Binary(4).log_volume == pytest.approx(math.log(16))
    assert Reals(1).log_volume == Orthant(1).log_volume == math.inf


def scores_of_uniform_means(points, low, high, discrete):
    """z-scores of the column means against those of the uniform distribution."""
    width = np.subtract(high, low)
    variance = width**2 / (4 if discrete else 12)
    return (points.mean(axis=0) - np.add(low, high) / 2) / np.sqrt(variance / len(points))


@pytest.mark.parametrize("space", BOUNDED, ids=str)
def test_uniform_points_have_uniform_means_and_squeezed_ones_do_not(space):
    low, high = {
        Torus: ((0, 0), (TWO_PI, TWO_PI)),
        Box: ((0, -1), (2, 1)),
        Region: ((0, -1), (2, 1)),
        Binary: ((0, 0), (1, 1)),
    }[type(space)]
    points = space.uniform(20_000, np.random.default_rng(SEED))
    discrete = isinstance(space, Binary)
    assert points.shape == (20_000, 2)
    assert points.dtype == np.float64
    assert space.contains(points).all()
    assert np.abs(scores_of_uniform_means(points, low, high, discrete)).max() < 4.9
    squeezed = low + 0.9 * (points - low)
    assert np.abs(scores_of_uniform_means(squeezed, low, high, discrete)).max() > 4.9


@pytest.mark.parametrize("space", [Reals(2), Orthant(2)], ids=str)
def test_no_uniform_distribution_on_unbounded_spaces(space):
    with pytest.raises(InputError, match=r"no uniform distribution on .*Normal or StudentT"):
        space.uniform(3, np.random.default_rng(SEED))


@pytest.mark.parametrize("space", [Torus, Reals, Orthant, Binary])
@pytest.mark.parametrize("dimension", [0, -1, 1.5, True, "two"])
def test_dimensions_are_whole_and_positive(space, dimension):
    with pytest.raises(
        InputError,
        match=rf"{space.__name__}\(dimension\) needs a whole number of .* got {dimension!r}",
    ):
        space(dimension)


def test_boxes_refuse_bounds_in_the_wrong_order_or_number():
    with pytest.raises(InputError, match=r"low < high .* got low=\[0.0, 1.0\], high=\[1.0, 1.0\]"):
        Box((0, 1), (1, 1))
    with pytest.raises(InputError, match="finite bounds"):
        Box(0, math.inf)
    with pytest.raises(InputError, match=r"one lower and one upper bound .* \(1,\) and \(2,\)"):
        Box(0, (1, 2))


@pytest.mark.parametrize(
    "value", ["a", "1", None, True, [], [1.0, "a"], [[1], [1, 2]], 1j, 10**400]
)
def test_bounds_of_boxes_are_numbers(value):
    with pytest.raises(
        InputError,
        match=r"^Box\(low=...\) must be a number or an array of numbers, such as .*, got ",
    ) as raised:
        Box(value, 1)
    assert str(raised.value).endswith(f"got {shown(value)}")
    with pytest.raises(InputError, match=r"^Box\(high=...\) must be a number or an array of"):
        Box(0, value)


def test_bounds_of_boxes_may_be_any_numbers():
    assert Box(np.float32(0), 10**30).log_volume == pytest.approx(30 * math.log(10))
    assert Box([0, -(10**30)], [10**30, 0]).dimension == 2


def test_boxes_compare_by_their_bounds():
    assert Box((0, 0), (1, 1)) == Box(np.zeros(2), np.ones(2))
    assert hash(Box((0, 0), (1, 1))) == hash(Box(np.zeros(2), np.ones(2)))
    assert Box(0, 1) != Box(0, 2)
    assert Box(0, 1) != "Box"


def test_only_canonical_angles_are_on_the_torus():
    last = np.nextafter(TWO_PI, 0)
    angles = np.array([[0.0, last], [0.0, TWO_PI], [-1e-20, 0.0], [7.0, 0.0], [math.inf, 0.0]])
    assert Torus(2).contains(angles).tolist() == [True, False, False, False, False]
    assert Torus(2).contains(wrapped(angles[:4])).all()


def test_torus_wraps_into_one_turn():
    angles = np.array([[-math.pi], [TWO_PI], [np.float32(TWO_PI)], [-1e-20], [1.0]])
    points = as_points(angles, Torus(1), "VonMises()")
    assert points[:, 0] == pytest.approx([math.pi, 0, 0, 0, 1], abs=1e-6)
    assert ((points >= 0) & (points < TWO_PI)).all()
    assert wrapped(np.array([-1e-20]))[0] == 0


def test_torus_refuses_degrees_and_unwrapped_phases():
    with pytest.raises(
        InputError, match=r"radians.*from 0 to 359: pass np.deg2rad\(data\).*data % \(2 \* np.pi\)"
    ):
        as_points([0, 10, 359], Torus(1), "VonMises()")


ANGLES = np.random.default_rng(1).uniform(0, 6, 12)


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (-1, 1), (0, 2)])
@pytest.mark.parametrize("turned", [np.asarray, np.deg2rad], ids=["radians", "degrees"])
def test_a_column_of_labels_is_no_angle(labels, turned):
    frame = pd.DataFrame({"a": ANGLES, "cond": turned(np.resize(labels, 12).astype(float))})
    with pytest.raises(
        InputError, match=r"^column 'cond' holds only .* looks like labels, .*group"
    ):
        as_points(frame, Torus(2), "TorusGraph(2)")
    with pytest.raises(
        InputError, match=r"^column 1 holds only .* and .*, which looks like labels"
    ):
        as_points(frame.to_numpy(), Torus(2), "TorusGraph(2)")


@pytest.mark.parametrize("values", [(0, np.pi), (0, 1, 2), (0, 3), (0.5, 1), (0, np.deg2rad(90))])
def test_angles_of_few_values_are_angles(values):
    assert len(as_points(np.resize(values, 12), Torus(1), "VonMises()")) == 12


def test_whoever_has_such_angles_can_say_so():
    found = as_points(np.resize([0, 1], 12) - 2 * np.pi, Torus(1), "VonMises()")
    assert np.allclose(found[:, 0], np.resize([0, 1], 12))


def test_few_rows_say_nothing_about_labels():
    assert len(as_points([0, 1, 1, 0], Torus(1), "VonMises()")) == 4


def test_box_names_the_point_outside():
    with pytest.raises(
        InputError,
        match=r"lie in the box, got 2 such values, the first in row 1 \(counted from 0\) of "
        r"column 'y': 3, where the bounds are 0 and 2",
    ):
        as_points(pd.DataFrame({"x": [0, 1, 5], "y": [1, 3, 0]}), Box((0, 0), (1, 2)), "m")


def test_orthant_keeps_zeros_and_refuses_negatives():
    assert as_points([0, 1], Orthant(1), "m")[0, 0] == 0
    with pytest.raises(InputError, match=r"zero or positive, got 1 such value in row 1 .*: -2: "):
        as_points([0, -2], Orthant(1), "m")


def test_binary_refuses_other_values_and_knows_signs():
    with pytest.raises(InputError, match=r"0 or 1, got .* -1: pass \(data \+ 1\) / 2"):
        as_points([-1, 1, 1], Binary(1), "m")
    with pytest.raises(InputError, match=r"0 or 1, got .* 2: recode the data"):
        as_points([0, 1, 2], Binary(1), "m")


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        tuple(map(tuple, TABLE)),
        np.array(TABLE),
        np.array(TABLE, dtype=bool),
        np.array(TABLE, dtype=np.float32),
        np.array(TABLE, dtype=object),
        np.array(TABLE, order="F", dtype=float),
        np.ma.masked_array(TABLE),
        pd.DataFrame(TABLE, columns=["a", "b"]),
        pd.DataFrame(TABLE, columns=["a", "b"], dtype="Int64"),
        pd.DataFrame({"a": [False, True, True], "b": [1, 0, 1]}),
        pl.DataFrame(TABLE, schema=["a", "b"], orient="row"),
        pl.DataFrame({"a": [False, True, True], "b": [1, 0, 1]}),
    ],
    ids=lambda data: type(data).__name__,
)
def test_tables_of_every_kind_become_floats(data):
    points = as_points(data, Reals(2), "Gaussian(2)")
    assert points.dtype == np.float64
    assert points.flags.c_contiguous
    assert points.tolist() == TABLE


@pytest.mark.parametrize(
    "data", [[1, 2, 3], np.array([1, 2, 3]), pd.Series([1, 2, 3], name="a"), pl.Series([1, 2, 3])]
)
def test_one_column_may_be_flat(data):
    assert as_points(data, Reals(1), "Gaussian(1)").tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_input_is_neither_written_nor_shared(space):
    data = np.array(TABLE, dtype=float)
    points = as_points(data, space, "m")
    points[:] = 7
    assert data.tolist() == TABLE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, "a"], [2, 3]], r"must be numbers, got a \(str\) in row 0 .* of column 1: drop"),
        (np.array([["1", "2"]]), r"must be numbers, got 1 \(str\) in row 0"),
        (pd.DataFrame({"x": [1, 2], "id": ["u", "v"]}), r"got u \(str\) .* column 'id'"),
        (pl.DataFrame({"x": [1, 2], "id": ["u", "v"]}), r"got u \(str\) .* column 'id'"),
        (pl.DataFrame({"x": [1, 2], "l": [[1.0], [2.0]]}), "column 'l'"),
        (pd.DataFrame({"x": [1, 2], "t": pd.to_datetime(["2020", "2021"])}), "column 't'"),
        (np.array([["2020", "2021"]], dtype="datetime64[s]"), "must be numbers, got 2020"),
        ([[1, 10**400], [2, 3]], "must be numbers, got 1000"),
        ([[1j, 2], [3, 4]], r"must be real numbers, got complex ones: pass np.angle\(data\)"),
        (np.zeros((200, 3)), r"must have 2 columns \(Gaussian\(2\)\), got shape \(200, 3\)$"),
        (np.zeros((2, 9)), r"got shape \(2, 9\): pass data.T"),
        (np.zeros(5), r"must have 2 columns \(Gaussian\(2\)\), got shape \(5,\)$"),
        (np.zeros((4, 3, 2)), r"table with one row .* got 3 dimensions, shape \(4, 3, 2\)"),
        (3.5, "must be an array, a list or a data frame .* got float"),
        ({"a": [1, 2]}, "must be an array, a list or a data frame .* got dict"),
        ([[1, 2], [3]], "rows of equal length, got a list with rows of different lengths"),
        ([], r"must have rows and columns, got empty data, shape \(0,\)"),
        (pd.DataFrame({"a": [], "b": []}), r"got empty data, shape \(0, 2\)"),
        ([[1, 2]], "at least 2 rows, one for each observation, got 1"),
        ([[1, 2], [3, math.nan]], r"finite.* 1 such value in row 1 .* column 1: nan: drop these"),
        ([[1, None], [3, 4]], r"finite.* in row 0 \(counted from 0\) of column 1: nan"),
        ([[1, 2], [-math.inf, math.nan]], r"finite.* 2 such values, .* row 1 .* column 0: -inf"),
        (np.ma.masked_array(TABLE, mask=[[0, 0], [0, 1], [0, 0]]), "row 1 .* column 1: nan"),
        (np.ma.masked_array(TABLE, mask=[[0, 1]] * 3, dtype=object), "3 such values, .*column 1"),
        (pd.DataFrame({"a": [1, pd.NA], "b": [1, 2]}, dtype="Int64"), "row 1 .* column 'a': nan"),
        (pd.DataFrame({"a": [1, pd.NA], "b": [1, 2]}), "row 1 .* column 'a': nan"),
        (pl.DataFrame({"a": [1, None], "b": [1, 2]}), "row 1 .* column 'a': nan"),
        (pl.DataFrame({"a": [True, None], "b": [1, 2]}), "row 1 .* column 'a': nan"),
    ],
)
def test_unusable_data_are_refused_in_plain_words(data, message):
    with pytest.raises(InputError, match=message):
        as_points(data, Reals(2), "Gaussian(2)")


def test_one_column_is_singular_and_series_keep_their_name():
    with pytest.raises(InputError, match=r"must have 1 column \(VonMises\(\)\), got shape"):
        as_points(np.zeros((5, 2)), Torus(1), "VonMises()")
    with pytest.raises(InputError, match="column 'phase': nan"):
        as_points(pd.Series([1.0, math.nan], name="phase"), Torus(1), "VonMises()")


def test_the_minimum_of_rows_can_be_set():
    assert as_points([[1, 2]], Reals(2), "m", minimum=1).shape == (1, 2)
    with pytest.raises(InputError, match="at least 5 rows, one for each observation, got 3"):
        as_points(TABLE, Reals(2), "m", minimum=5)


@pytest.mark.parametrize(
    ("data", "columns"),
    [
        ([1, 2, 3], 1),
        (np.zeros((4, 2)), 2),
        (pd.DataFrame(TABLE), 2),
        (np.zeros((0, 0)), 1),
        (3, 1),
    ],
)
def test_columns_are_counted_as_they_are_read(data, columns):
    assert column_count(data) == columns

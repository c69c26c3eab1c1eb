"""Rows of two tables are matched by label where both have labels, and never silently by chance."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ncbayes as ncb
from ncbayes import over_time
from ncbayes.spaces.rows import match_rows

TABLE = pd.DataFrame({"x": [1.0, 2, 3], "y": [4.0, 5, 6]}, index=["a", "b", "c"])
TIMES = pd.Series([10, 20, 30], index=["a", "b", "c"])


@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]])
def test_the_same_labels_in_any_order_are_the_same_rows(order):
    assert list(match_rows(TABLE, TIMES[order])) == [10, 20, 30]
    assert list(match_rows(TABLE.loc[order], TIMES)) == [TIMES[label] for label in order]
    assert list(match_rows(TABLE["x"], TIMES[order].to_frame("t"))["t"]) == [10, 20, 30]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (TABLE.to_numpy(), TIMES),
        (TABLE, TIMES.to_numpy()),
        (TABLE, [10, 20, 30]),
        (TABLE, (10, 20, 30)),
        (TABLE, pl.Series([10, 20, 30])),
        (TABLE, pd.Index([10, 20, 30])),
        (pl.DataFrame({"x": [1.0, 2, 3]}), TIMES),
        # Labels that occur twice, in the same places.
        (TABLE.set_axis([1, 1, 2]), TIMES.set_axis([1, 1, 2])),
        # Of different lengths, which others refuse in their own words.
        (TABLE, TIMES[:2]),
    ],
)
def test_what_has_no_labels_or_equal_ones_is_matched_by_position(table, column):
    assert match_rows(table, column) is column


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [0, 1, 2],
            "points and times have different indexes, so their rows can't be matched by label, as "
            r"pandas objects are: 3 of 3 labels of times are not among those of points, the first "
            r"0; pass rows of one frame, or times.to_numpy\(\) to match times to points by positio",
        ),
        (
            ["a", "b", "d"],
            "1 of 3 labels of times are not among those of points, the first 'd'; pa",
        ),
        (
            ["a", "a", "b"],
            "labels that occur twice, such as 'a', do not say which row belongs to wh",
        ),
    ],
)
def test_other_labels_are_refused(labels, message):
    with pytest.raises(ncb.InputError, match=message):
        match_rows(TABLE, TIMES.set_axis(labels))


@pytest.fixture(scope="module")
def shuffled():
    """Points near 0 at time 1 and near 5 at time 2, and their times in another order of rows."""
    rng = np.random.default_rng(1)
    times = pd.Series(np.repeat([1, 2], 40))
    points = pd.DataFrame(rng.normal(size=(80, 2)) + 5.0 * (times.to_numpy() - 1)[:, None])
    return points, times, times.sample(frac=1, random_state=1)


def test_every_function_of_points_and_times_matches_them(shuffled, monkeypatch):
    """By position, nearly half of the points would be at the wrong time."""
    points, times, mixed = shuffled
    assert (times.to_numpy() != mixed.to_numpy()).mean() > 0.3
    kde = ncb.baselines.kde_over_time(points, mixed, progress=False)
    assert (kde.points["1"].mean(axis=0) < 1).all()
    by_time = ncb.baselines.TimewiseKDE.of(points, mixed)
    assert (by_time.kernels[0].centers.mean(axis=0) < 1).all()
    right = ncb.scores.log_score(kde, points, times=times)
    assert ncb.scores.log_score(kde, points, times=mixed).mean == right.mean
    assert ncb.scores.log_score(kde, points, times=mixed.to_numpy()).mean < right.mean - 1
    fitted = []
    monkeypatch.setattr(over_time, "fit_events", lambda found, **options: fitted.append(found))
    ncb.fit_density_over_time(points, mixed, progress=False)
    np.testing.assert_array_equal(fitted[0].groups["1"], points[:40])
    for ask in (
        lambda other: ncb.fit_density_over_time(points, other),
        lambda other: ncb.baselines.kde_over_time(points, other),
        lambda other: ncb.baselines.TimewiseKDE.of(points, other),
        lambda other: ncb.scores.log_score(kde, points, times=other),
    ):
        with pytest.raises(ncb.InputError, match="points and times have different indexes"):
            ask(times.set_axis(range(7, 87)))

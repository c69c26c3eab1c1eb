"""Pictures of pairs of angles, and of predictive checks."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection

import ncbayes as ncb
from ncbayes import plots
from ncbayes.predictive import PredictiveCheck

RNG = np.random.default_rng(1)
ANGLES = RNG.uniform(0, 2 * np.pi, (50, 3))


def test_pairs_have_points_histograms_and_numbers(drawn):
    figure = drawn(plots.pairs(ANGLES, names=["left", "right", "top"]))
    axes = np.array(figure.axes).reshape(3, 3)
    turned = np.angle(np.exp(1j * ANGLES))
    for j in range(3):
        for k in range(3):
            axis = axes[j, k]
            if j > k:
                points = axis.lines[0].get_xydata()
                assert np.allclose(points, turned[:, [k, j]])
                assert axis.get_xlim() == axis.get_ylim() == (-np.pi, np.pi)
            elif j == k:
                assert sum(bar.get_height() for bar in axis.patches) == 50
            else:
                lengths = [
                    abs(np.exp(1j * (ANGLES[:, j] + sign * ANGLES[:, k])).mean())
                    for sign in (-1, 1)
                ]
                text = "difference {:.2f}\nsum {:.2f}".format(*lengths)
                assert axis.texts[0].get_text() == text
    assert [axis.get_xlabel() for axis in axes[2]] == ["left", "right", "top"]
    assert [axis.get_ylabel() for axis in axes[:, 0]] == ["left", "right", "top"]
    ticks = [text.get_text() for text in axes[2, 0].get_xticklabels()]
    assert ticks == [r"$-\pi$", "0", r"$\pi$"]


def test_columns_are_chosen_by_name_and_number_and_frames_name_their_own():
    frame = pd.DataFrame(ANGLES, columns=["u", "v", "w"])
    for figure in (
        plots.pairs(frame, ["w", "u"]),
        plots.pairs(ANGLES, [2, 0], names=("u", "v", "w")),
    ):
        assert len(figure.axes) == 4
        assert [axis.get_xlabel() for axis in figure.axes[2:]] == ["w", "u"]
    assert plots.pairs(ANGLES[:, 0]).axes[0].get_xlabel() == "x1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ANGLES, ["x4"]), "columns must be a list of names among ['x1', 'x2', 'x3'] or of numbers "
         "from 0 to 2, got ['x4']"),
        ((ANGLES, [3]), "columns must be a list of names among ['x1', 'x2', 'x3'] or of numbers "
         "from 0 to 2, got [3]"),
        ((ANGLES, "x1"), "columns must be a list of names among ['x1', 'x2', 'x3'] or of numbers "
         "from 0 to 2, got 'x1'"),
        ((ANGLES, []), "columns must be a list of names among ['x1', 'x2', 'x3'] or of numbers "
         "from 0 to 2, got []"),
        ((ANGLES, None, ["a", "b"]), "names must be 3 names, one for each column of the data, got "
         "['a', 'b']"),
        ((ANGLES, None, "abc"), "names must be 3 names, one for each column of the data, got "
         "'abc'"),
        ((np.zeros((5, 13)),), "plots.pairs has room for 1 to 12 columns, got 13; choose some, as "
         "in columns=['x1', 'x2', 'x3']"),
    ],
)  # fmt: skip
def test_what_pairs_cannot_show_is_said(arguments, message):
    with pytest.raises(ncb.InputError, match=f"^{re.escape(message)}$"):
        plots.pairs(*arguments)


def test_pairs_need_angles():
    with pytest.raises(ncb.InputError, match=r"^angles must be in radians"):
        plots.pairs(100 * ANGLES)
    with pytest.raises(ncb.InputError, match=r"^data must be finite numbers"):
        plots.pairs(np.full((3, 2), np.nan))


def check(rows, level=0.9):
    columns = ["statistic", "node1", "node2", "observed", "replicated", "low", "high", "p_value"]
    table = pd.DataFrame(rows, columns=columns)
    replications = np.tile(table["replicated"].to_numpy(), (20, 1))
    return PredictiveCheck(table, replications, level, ("difference",))


ROWS = [
    ("phase_locking", "a", "b", 0.5, 0.48, 0.4, 0.6, 0.5),
    ("phase_locking", "a", "c", 0.9, 0.2, 0.1, 0.3, 0.02),
    ("phase_locking", "b", "c", 0.05, 0.2, 0.1, 0.3, 0.02),
    ("resultant", "a", "", 0.5, 0.5, 0.4, 0.6, 1.0),
    # The observed direction is 0.1 beyond pi, seen from the replications.
    ("difference", "a", "b", 0.1 - np.pi, np.pi - 0.1, np.pi - 0.4, np.pi + 0.3, 0.5),
    ("difference", "a", "c", -1.0, -1.1, -1.4, -0.9, 0.5),
]


def test_observed_and_replicated_are_compared_by_panel(drawn):
    figure = drawn(plots.predictive(check(ROWS)))
    locking, resultant, difference, empty = figure.axes
    inside, outside = (
        each.get_offsets().tolist()
        for each in locking.collections
        if isinstance(each, PathCollection)
    )
    assert inside == [[0.5, 0.48]]
    assert outside == [[0.9, 0.2], [0.05, 0.2]]
    bars = [each for each in locking.collections if isinstance(each, LineCollection)]
    assert bars[0].get_segments()[0].tolist() == [[0.5, 0.4], [0.5, 0.6]]
    assert [text.get_text() for text in locking.texts] == ["farthest out:\na, c\nb, c"]
    assert locking.get_title().startswith("phase locking\n2 of 3 outside, overall p = ")
    assert locking.get_xlim() == locking.get_ylim()
    assert resultant.get_title().startswith("resultant length\n0 of 1 outside")
    assert not resultant.texts
    marks = next(each for each in difference.collections if isinstance(each, PathCollection))
    assert marks.get_offsets()[0].tolist() == pytest.approx([np.pi + 0.1, np.pi - 0.1])
    assert not empty.axison
    assert figure.get_supylabel() == "replicated: mean and 90 % interval"


def test_one_statistic_is_one_panel(drawn):
    assert len(drawn(plots.predictive(check(ROWS[3:4], 0.5))).axes) == 1


def test_a_real_check_is_drawn_with_as_many_outside_as_its_summary_says(drawn):
    model = ncb.models.TorusGraph(3, marginal=False)
    x = model.sample(np.array([1.5] + [0.0] * 11), 60, np.random.default_rng(1))
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(model, x, noise="matched", draws=100, tune=50, chains=2, cores=1,
                            seed=1, progress=False)  # fmt: skip
    found = ncb.predictive.check_angles(posterior, model, x, draws=30, seed=1, sweeps=5)
    figure = drawn(plots.predictive(found))
    for axis, (_, row) in zip(figure.axes, found.summary().iterrows(), strict=True):
        marks = [each for each in axis.collections if isinstance(each, PathCollection)]
        assert [len(each.get_offsets()) for each in marks] == [
            round(row["count"] * (1 - row["outside"])), round(row["count"] * row["outside"]),
        ]  # fmt: skip


def test_predictive_needs_a_check():
    with pytest.raises(
        ncb.InputError,
        match=r"^plots.predictive needs what ncbayes.predictive.check or check_angles returns",
    ):
        plots.predictive(3)

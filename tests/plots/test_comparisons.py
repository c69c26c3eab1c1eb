"""The picture of a comparison holds what its table does."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

import ncbayes as ncb
from ncbayes import plots
from ncbayes.models import Ising


@pytest.fixture
def compared(by_hand):
    rng = np.random.default_rng(1)
    model = Ising(3)
    size = len([name for names in model.groups.values() for name in names])
    theta = rng.normal(size=(400, 1, size))
    shifted = theta + np.linspace(0, 0.5, size)
    return ncb.compare({"one": by_hand(model, theta), "two": by_hand(model, shifted)}, level=0.8)


def marks(axis):
    found = [each for each in axis.collections if isinstance(each, PathCollection)]
    return {each.get_label(): np.asarray(each.get_offsets()) for each in found}


def bars(axis):
    found = [each for each in axis.collections if isinstance(each, LineCollection)]
    return [np.array(each.get_segments())[:, :, 0] for each in found]


def test_rows_hold_means_and_intervals_in_sds_of_the_reference(compared, drawn):
    figure = drawn(plots.comparison(compared))
    axis = figure.axes[0]
    base, other = (
        compared.table[compared.table["posterior"] == name].set_index("parameter")
        for name in ("one", "two")
    )
    assert [text.get_text() for text in axis.get_yticklabels()] == list(base.index)
    assert np.allclose(marks(axis)["one"][:, 0], 0)
    wanted = (other["mean"] - base["mean"]) / base["sd"]
    assert np.allclose(marks(axis)["two"][:, 0], wanted)
    ends = other[["eti80_low", "eti80_high"]].to_numpy()
    ends = (ends - base[["mean"]].to_numpy()) / base[["sd"]].to_numpy()
    assert np.allclose(bars(axis)[1], ends)
    assert axis.get_xlabel() == (
        "difference from the mean of one, in its sds\nmean and 80 % equal-tailed interval"
    )


def test_raw_values_and_the_most_different(compared, drawn):
    figure = drawn(plots.comparison(compared, most=2, standardized=False))
    axis = figure.axes[0]
    names = [text.get_text() for text in axis.get_yticklabels()]
    assert names == ["x1*x3", "x2*x3"]
    assert "2 of 6 parameters, those that differ most" in axis.get_xlabel()
    table = compared.table[compared.table["posterior"] == "two"].set_index("parameter")
    assert np.allclose(marks(axis)["two"][:, 0], table.loc[names, "mean"])


def test_what_is_no_comparison_is_refused(compared):
    with pytest.raises(ncb.InputError, match=r"plots\.comparison needs what ncbayes\.compare"):
        plots.comparison({"a": 1})
    with pytest.raises(ncb.InputError, match="most must be a whole number"):
        plots.comparison(compared, most=0)

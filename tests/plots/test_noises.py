"""Pictures of the noise; those of traces and densities are tested with the demo in test_cli."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import plots

SHORT = {"draws": 1000, "tune": 100, "chains": 2, "cores": 1, "seed": 1, "progress": False}
ANGLE = ncb.models.VonMises()
TRUTH = np.array([1.5, 0.5])


def fit(model, data, **options):
    return ncb.fit(model, data, **{"noise": "matched", **SHORT, **options})


def angles(size, seed=1):
    return ANGLE.sample(TRUTH, size, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def uniform():
    return fit(ANGLE, angles(200), noise=ncb.noise.Uniform(ANGLE.space), noise_ratio=2)


@pytest.fixture(scope="module")
def adaptive():
    opposite = ncb.noise.VonMises([np.pi], [3.0])
    return fit(ANGLE, angles(200), noise=ncb.noise.Adaptive(opposite, batch=50), noise_ratio=1)


@pytest.fixture(scope="module")
def pooled():
    data = {name: angles(size, size) for name, size in (("a", 60), ("b", 90), ("c", 120))}
    return fit(ANGLE, data, noise=ncb.noise.Pooled(sets=4), noise_ratio=1)


def labels(axis):
    return axis.get_legend_handles_labels()[1]


def heights(axis, label):
    """Of the bars of one histogram, and the bars."""
    found = next(each for each in axis.containers if each[0].get_label() == label)
    return np.array([bar.get_height() for bar in found]), found


def lengths(axis, position):
    return [bar.get_width() for bar in axis.containers[position]]


def adapted(posterior, **record):
    """The posterior with another record of its adaptation."""
    tree = posterior.data.copy(deep=True)
    names = {name: (("update", "group"), np.array(values)) for name, values in record.items()}
    tree["adaptation"] = tree["adaptation"].to_dataset().drop_dims("update").assign(names)
    return ncb.Posterior(tree)


def with_noise(posterior, **arrays):
    """The posterior with some of the facts about its noise changed."""
    tree = posterior.data.copy(deep=True)
    stored = tree["noise"].to_dataset()
    tree["noise"] = stored.assign({k: (stored[k].dims, v) for k, v in arrays.items()})
    return ncb.Posterior(tree)


def test_histograms_hold_each_point_once_and_the_line_is_where_noise_like_the_data_would_be(
    uniform,
):
    left, _ = plots.noise(uniform).axes
    stored = uniform.data["noise"]
    for label, name in (
        ("data (n = 200)", "log_odds_at_data"),
        ("noise (m = 400)", "log_odds"),
    ):
        shares, bars = heights(left, label)
        edges = [bar.get_x() for bar in bars] + [bars[-1].get_x() + bars[-1].get_width()]
        # An edge is a sum of bars, and may miss the outermost point by rounding.
        values = np.clip(stored[name].to_numpy().ravel(), edges[0], edges[-1])
        assert np.allclose(shares, np.histogram(values, edges)[0] / len(values))
        assert shares.sum() == pytest.approx(1)
    vertical = next(line for line in left.lines if "if noise were like" in line.get_label())
    assert vertical.get_xdata()[0] == pytest.approx(-np.log(2))


def test_bars_are_the_noise_points_and_their_worth_and_the_title_is_the_verdict(uniform):
    figure = plots.noise(uniform)
    right, table = figure.axes[1], uniform.noise_report().table
    assert lengths(right, 0) == [400]
    assert lengths(right, 1) == pytest.approx(table["ideal_noise"].tolist())
    title = " ".join(figure.get_suptitle().split())
    assert uniform.noise_report().lines[0].startswith(title)
    assert title.startswith("The noise is fair: the 400 comparison points (noise) are worth ")
    assert title.endswith("wider than with the exact likelihood")


def test_groups_that_keep_least_come_first_and_sets_are_averaged_with_their_range(pooled):
    figure = plots.noise(pooled)
    left, right = figure.axes
    assert {"data (n = 270)", "noise (m = 270 in each of 4 sets)"} <= set(labels(left))
    means = pooled.noise_report().table.groupby("group").mean().sort_values("information_kept")
    assert [text.get_text() for text in right.get_yticklabels()] == means.index.tolist()
    assert lengths(right, 1) == pytest.approx(means["ideal_noise"].tolist())
    ranges = pooled.noise_report().table["ideal_noise"].groupby("group").agg(["min", "max"])
    drawn = [segment[:, 0].tolist() for segment in right.collections[0].get_segments()]
    assert np.allclose(drawn, ranges.loc[means.index])
    title = " ".join(figure.get_suptitle().split())
    assert title.endswith("(the worst of 12 groups and sets)")


def test_a_picture_of_a_loaded_posterior_is_the_same(pooled, adaptive, tmp_path):
    for posterior in (pooled, adaptive):
        posterior.save(tmp_path / "fit.nc")
        for name in ("one.png", "other.png"):
            plots.noise(posterior).savefig(tmp_path / name, metadata={"Software": None})
            posterior = ncb.load(tmp_path / "fit.nc")
        assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_updates_that_were_made_are_joined_and_others_stand_alone(adaptive):
    posterior = adapted(
        adaptive,
        kept=[[0.3], [0.25], [np.nan], [0.45]],
        kept_before=[[0.1], [0.3], [0.3], [0.3]],
        made=[[1.0], [0.0], [0.0], [1.0]],
        alpha=[[0.1], [0.1], [np.nan], [0.1]],
        log_z_error=[[0.1], [0.1], [np.nan], [0.1]],
    )
    right = plots.noise(posterior).axes[1]
    used, worse, refused, *_ = right.lines
    assert np.allclose(used.get_xydata(), [[0, 10], [1, 30], [4, 45]])
    assert np.allclose(worse.get_xydata(), [[2, 25]])
    assert worse.get_fillstyle() == "none"
    assert np.allclose(refused.get_xydata(), [[3, 30]])
    assert labels(right) == [
        "noise in use",
        "tried, no better",
        "refused by the guard",
        "ideal noise",
    ]
    ideal = next(line for line in right.lines if line.get_label() == "ideal noise")
    assert ideal.get_ydata()[0] == pytest.approx(50)
    assert right.get_ylim()[0] == 0


def test_a_real_adaptation_ends_where_its_record_says(adaptive):
    record = adaptive.noise_report().updates
    used = plots.noise(adaptive).axes[1].lines[0]
    assert used.get_ydata()[0] == pytest.approx(100 * record["kept_before"].iloc[0])
    assert used.get_ydata()[-1] == pytest.approx(100 * record["kept"][record["made"]].iloc[-1])


def test_adaptive_noise_where_no_update_passed_is_still_a_picture(adaptive):
    none = [[np.nan]]
    posterior = adapted(
        adaptive, kept=none, kept_before=[[0.4]], made=[[0.0]], alpha=none, log_z_error=none
    )
    right = plots.noise(posterior).axes[1]
    assert "refused by the guard" in labels(right)
    assert "tried, no better" not in labels(right)


def test_points_beyond_the_space_are_counted_and_certain_ones_drawn_at_the_ends(uniform):
    log_odds = uniform.data["noise"]["log_odds"].to_numpy().copy()
    log_odds[:7], log_odds[7:10] = -np.inf, -300.0
    left = plots.noise(with_noise(uniform, log_odds=log_odds)).axes[0]
    label = "noise (m = 400; 7 beyond the model's space not drawn)"
    assert label in labels(left)
    shares, bars = heights(left, label)
    assert bars[0].get_x() == pytest.approx(-20)
    assert shares[0] == pytest.approx(3 / 393)
    assert left.get_xlabel().endswith("(beyond 20: at the ends)")


def test_noise_that_is_all_beyond_the_space_is_no_error(uniform):
    nothing = np.full(400, -np.inf)
    left = plots.noise(with_noise(uniform, log_odds=nothing)).axes[0]
    assert "noise (m = 400; 400 beyond the model's space not drawn)" in labels(left)


def test_log_odds_that_hardly_differ_are_not_blown_up(uniform):
    alike = -np.log(2)
    posterior = with_noise(
        uniform, log_odds=np.full(400, alike), log_odds_at_data=np.full((1, 200), alike)
    )
    left = plots.noise(posterior).axes[0]
    assert left.get_xlim()[0] <= alike - 1
    assert left.get_xlim()[1] >= alike + 1


def test_many_groups_with_long_names_are_cut():
    data = {f"a group with a long name, number {k}": angles(30, k) for k in range(14)}
    posterior = fit(ANGLE, data)
    right = plots.noise(posterior).axes[1]
    names = [text.get_text() for text in right.get_yticklabels()]
    assert len(names) == 12
    assert {len(name) for name in names} == {20}
    assert right.get_ylabel() == "12 of 14 groups"


def test_noise_plots_need_a_posterior():
    with pytest.raises(
        ncb.InputError,
        match=r"^plots.noise needs the posterior that ncbayes.fit or ncbayes.load returns, got 3$",
    ):
        plots.noise(3)
    assert not plt.get_fignums()

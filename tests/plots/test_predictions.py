"""Pictures of data beside rows simulated from the fit, and titles of failed fits."""

import re
import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import ncbayes as ncb
from ncbayes import plots

SHORT = {"draws": 200, "tune": 200, "cores": 1, "seed": 1, "progress": False}


def fit(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, **{"noise": "matched", **SHORT, **options})


@pytest.fixture(scope="module")
def failed():
    """Angles around one direction, with a tenth of them anywhere: noise covers too little."""
    rng = np.random.default_rng(1)
    common = rng.vonmises(0, 15, 300)[:, None]
    x = common + rng.vonmises(0, 15, (300, 6)) + np.linspace(-1, 1, 6)
    x[:30] = rng.uniform(0, 2 * np.pi, (30, 6))
    model = ncb.models.TorusGraph(6)
    with pytest.warns(ncb.FitWarning) as told:
        posterior = ncb.fit(model, x % (2 * np.pi), noise="matched", **SHORT)
    assert any("log Z as worked out" in str(each.message) for each in told)
    return posterior


@pytest.fixture(scope="module")
def groups():
    """Angles of one peak in group a, and of two opposite ones in group b."""
    rng = np.random.default_rng(1)
    one, other = (rng.vonmises(0, 2, (300, 1)) % (2 * np.pi) for _ in range(2))
    other[::2] = (other[::2] + np.pi) % (2 * np.pi)
    return fit(ncb.models.VonMises(), {"a": one, "b": other})


@pytest.fixture(scope="module")
def gaussian():
    return fit(ncb.models.Gaussian(2), np.random.default_rng(1).normal(size=(200, 2)))


@pytest.fixture(scope="module")
def densities():
    rng = np.random.default_rng(1)
    points = np.clip(rng.normal(0.4, 0.1, 160), 0, 1)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit_density_over_time(
            points, np.repeat([1, 2], 80), domain=ncb.spaces.Box([0.0], [1.0]), basis=6, **SHORT
        )


def dots(axis):
    """Places of all dots, those within the limits first in each look."""
    found = [line for line in axis.lines if line.get_marker() in ("o", "D")]
    return np.concatenate([line.get_xydata() for line in found])


def far(axis):
    return np.concatenate([line.get_xdata() for line in axis.lines if line.get_marker() == "D"])


def limits(axis):
    upright = [line.get_xdata() for line in axis.lines if line.get_marker() == "None"]
    return sorted({float(x[0]) for x in upright} - {0.0})


def stairs(axis):
    """Heights by label."""
    return {each.get_label(): each.get_data() for each in axis.patches if each.get_label()}


def legend(axis):
    return axis.get_legend_handles_labels()[1]


def shown(figure):
    return " ".join(figure.get_suptitle().split())


def changed(posterior, **arrays):
    """The posterior with some of what it saw of itself changed."""
    tree = posterior.data.copy(deep=True)
    stored = tree["verification"].to_dataset()
    tree["verification"] = stored.assign({k: (stored[k].dims, v) for k, v in arrays.items()})
    return ncb.Posterior(tree)


def test_every_score_is_a_dot_beside_its_kind_between_the_limits(gaussian, drawn):
    stored = gaussian.data["verification"].to_dataset()
    left = drawn(plots.predictions(gaussian)).axes[0]
    found = dots(left)
    assert len(found) == stored.sizes["compared"]
    assert np.allclose(sorted(found[:, 0]), np.sort(np.clip(stored["z"], -12, 12)))
    rows = np.bincount(found[:, 1].round().astype(int))
    assert rows.tolist() == np.bincount(stored["compared_look"]).tolist()
    names = [" ".join(text.get_text().split()) for text in left.get_yticklabels()]
    fitted = [not stored["z"][stored["compared_look"] == k].any() for k in range(len(names))]
    expected = stored["look_name"].to_numpy().tolist()
    assert names == [name + " (fitted)" * own for name, own in zip(expected, fitted, strict=True)]
    limit = norm.isf(0.01 / stored.sizes["compared"] / 2)
    assert limits(left) == pytest.approx([-limit, limit])
    assert (np.abs(far(left)) > limit).all()
    assert f"score z of {len(found)} statistics (lines: ±{limit:.1f}" in left.get_xlabel()


def test_the_worst_is_named_and_its_histogram_beside_it_is_of_the_smallest_p(gaussian):
    stored = gaussian.data["verification"].to_dataset()
    p_values = np.linspace(0.9, 0.5, stored.sizes["look"])
    p_values[1] = 0.01
    left, right = plots.predictions(changed(gaussian, p_value=p_values)).axes
    worst = stored.isel(look=1)
    assert [text.get_text() for text in left.texts] == [worst["worst_label"].item()]
    assert left.texts[0].xy[0] == pytest.approx(np.clip(worst["worst_z"].item(), -12, 12))
    assert round(left.texts[0].xy[1]) == 1
    assert right.get_xlabel() == worst["picture_name"].item()
    assert legend(right) == ["data", "simulated from the fit"]
    for label, name in (("data", "data_share"), ("simulated from the fit", "simulated_share")):
        heights, edges, _ = stairs(right)[label]
        assert np.allclose(heights, worst[name].dropna("bar"))
        assert np.allclose(edges, worst["edges"].dropna("edge"))


def test_the_title_says_whether_data_and_simulated_rows_are_alike(gaussian, groups):
    alike = plots.predictions(gaussian)
    assert shown(alike).startswith("Data simulated from the fit look like the data: of ")
    assert shown(alike).endswith(".")
    apart = shown(plots.predictions(groups))
    assert apart.startswith("Data simulated from the fit do not look like the data in group b: ")


def test_scores_that_are_far_out_stand_at_the_ends(gaussian):
    z = gaussian.data["verification"]["z"].to_numpy().copy()
    z[:3] = 30, -400, 12.5
    left = plots.predictions(changed(gaussian, z=z)).axes[0]
    assert np.abs(dots(left)).max() <= 12
    assert left.get_xlabel().endswith("; 3 beyond 12, at the ends)")
    assert left.get_xlim()[1] > 12
    calm = plots.predictions(changed(gaussian, z=z.clip(-1, 1))).axes[0]
    assert "beyond" not in calm.get_xlabel()
    assert not len(far(calm))
    assert calm.get_xlim()[1] < 6


def test_of_several_groups_the_worst_is_shown_or_the_one_asked_for(groups):
    stored = groups.data["verification"].to_dataset()
    of_group = stored["look_group"].to_numpy()
    for group, label in ((None, "b"), ("a", "a"), ("b", "b")):
        figure = plots.predictions(groups, group=group)
        count = sum(
            int((stored["compared_look"] == k).sum()) for k in np.flatnonzero(of_group == label)
        )
        assert len(dots(figure.axes[0])) == count < stored.sizes["compared"]
        assert f"Shown: group {label}, its smallest p is " in shown(figure)
        # The limit counts all groups, since the worst of them is chosen.
        limit = norm.isf(0.01 / stored.sizes["compared"] / 2)
        assert limits(figure.axes[0]) == pytest.approx([-limit, limit])


def test_cells_of_densities_are_a_picture(densities, drawn):
    for group, look in (("1", "points in cells"), (None, "points in")):
        left, right = drawn(plots.predictions(densities, group=group)).axes
        (label,) = [text.get_text() for text in left.get_yticklabels()]
        assert label.startswith(look)
        assert right.get_xlabel() == "places, by expected points"
    with pytest.raises(ncb.InputError, match=r"^group must be one of the posterior's groups"):
        plots.predictions(densities, group="3")


@pytest.mark.parametrize("kind", ["binary", "counts", "graphs"])
def test_all_kinds_of_data_have_a_picture(kind, drawn):
    rng = np.random.default_rng(1)
    model, data = {
        "binary": lambda: (m := ncb.models.Ising(3), m.sample(np.zeros(6), 100, rng)),
        "counts": lambda: (ncb.models.ConwayMaxwell(2, edges=[]), rng.poisson(3.0, (100, 2)) * 1.0),
        "graphs": lambda: (
            m := ncb.models.ERGM(6, ["edges", "triangles"]),
            m.sample(np.array([-0.5, 0.1]), 30, rng),
        ),
    }[kind]()
    left, right = drawn(plots.predictions(fit(model, data))).axes
    assert len(left.get_yticklabels()) >= 2
    assert legend(right) == ["data", "simulated from the fit"]


def test_a_picture_of_a_loaded_posterior_is_the_same(groups, failed, tmp_path):
    for posterior in (groups, failed):
        posterior.save(tmp_path / "fit.nc")
        for name in ("one.png", "other.png"):
            plots.predictions(posterior).savefig(tmp_path / name, metadata={"Software": None})
            posterior = ncb.load(tmp_path / "fit.nc")
        assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_nothing_overlaps_or_leaves_the_figure(failed, groups, drawn):
    for posterior in (failed, groups):
        figure = drawn(plots.predictions(posterior))
        left = figure.axes[0]
        label = left.texts[0].get_window_extent()
        assert figure.bbox.x0 <= label.x0
        assert label.x1 <= figure.bbox.x1
        assert not label.overlaps(figure._suptitle.get_window_extent())
        ticks = [each.get_window_extent() for each in left.get_yticklabels()]
        assert min(box.x0 for box in ticks) >= figure.bbox.x0
        assert not any(one.overlaps(other) for one, other in pairwise(ticks))


def test_a_fit_that_was_not_verified_is_refused(gaussian):
    kept = {name: each.to_dataset() for name, each in gaussian.data.children.items()}
    del kept["verification"]
    tree = xr.DataTree.from_dict(kept)
    words = (
        "plots.predictions needs a fit that was compared with rows simulated from it, and this "
        "one was not{}; fit again with verify=True"
    )
    for why, told in (({}, ""), ({"not_verified": "it was interrupted"}, " (it was interrupted)")):
        tree.attrs = {**gaussian.data.attrs, **why}
        with pytest.raises(ncb.InputError, match=f"^{re.escape(words.format(told))}$"):
            plots.predictions(ncb.Posterior(tree))
    with pytest.raises(ncb.InputError, match=r"^plots.predictions needs the posterior that"):
        plots.predictions(3)
    assert not plt.get_fignums()


def test_a_group_without_rows_to_compare_is_refused(groups):
    tree = groups.data.copy(deep=True)
    stored = tree["verification"].to_dataset()
    tree["verification"] = stored.isel(look=np.flatnonzero(stored["look_group"] == "b"))
    message = "group must be one that has rows to compare, ['b'], got 'a'; pass group='b'"
    with pytest.raises(ncb.InputError, match=f"^{re.escape(message)}$"):
        plots.predictions(ncb.Posterior(tree), group="a")


def test_pictures_of_edges_of_a_failed_fit_say_so_first(failed, drawn):
    assert failed.data.attrs["grade"] == "failed"
    reason = failed.verdict().reason
    assert reason.startswith("log Z is off by ")
    network, matrix = (drawn(draw(failed)) for draw in (plots.network, plots.adjacency))
    titles = shown(network), " ".join(matrix.axes[0].get_title().split())
    chosen = f"{ncb.graphs.edges(failed)['selected'].sum()} of 15 edges"
    rests = f"{chosen} selected: 90 % interval", "dot: selected by the interval rule"
    for title, rest in zip(titles, rests, strict=True):
        assert title.startswith(f"FAILED FIT: {reason} {rest}")
    usable = failed.data.copy()
    usable.attrs["grade"] = "poor"
    assert shown(plots.network(ncb.Posterior(usable))).startswith(chosen)

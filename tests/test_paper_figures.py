"""The paper's figures, in small."""

import json
import os
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.io import savemat

import ncbayes as ncb
import ncbayes_paper
from ncbayes_paper import (
    chain_figure,
    crime_figure,
    density_figures,
    posteriors,
    recording_figures,
    torus_tables,
)
from ncbayes_paper.study import Settings

SHORT = (10, 20)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Few basis functions and coarse maps."""
    monkeypatch.setitem(density_figures.OPTIONS, "basis", 5)
    monkeypatch.setattr(density_figures, "SIZE", 20)
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path / "fits", sweeps=SHORT)


@pytest.fixture
def small(monkeypatch):
    """A stand-in with two channels a region."""
    monkeypatch.setattr(recording_figures, "CHANNELS", 2)
    monkeypatch.setattr(recording_figures, "TRIALS", 60)


def drawn(name, settings):
    figure, caption = ncbayes_paper.item(name).drawn(settings)
    # What only fails when a figure is drawn.
    figure.canvas.draw()
    return figure, caption


def written(figure):
    """All text in a figure outside of its panels."""
    texts = [figure.get_suptitle(), *(text.get_text() for text in figure.texts)]
    return "\n".join(texts)


def fits(settings):
    return sorted(settings.folder.glob("*.nc"))


def refuse(*arguments, **options):
    raise AssertionError("a fit that was kept must not be run again")


@pytest.mark.parametrize(
    "name", [name for name in ncbayes_paper.FILES if name.startswith("figure")]
)
def test_every_figure_has_its_name_and_a_title(name):
    item = ncbayes_paper.item(name)
    assert item.name == name
    assert item.title


@pytest.mark.parametrize("name", ["figure1", "figureS1"])
def test_truth_mean_and_kernels_share_a_scale_of_colours(name, settings):
    figure, caption = drawn(name, settings)
    panels = figure.axes[:12]
    meshes = [panel.collections[0] for panel in panels]
    assert len({mesh.get_clim() for mesh in meshes}) == 1
    assert meshes[0].get_clim()[1] >= max(mesh.get_array().max() for mesh in meshes[4:])
    assert [panel.get_title() for panel in panels[:4]] == ["t = 1", "t = 4", "t = 7", "t = 10"]
    rows = [panels[k].get_ylabel() for k in (0, 4, 8)]
    assert rows == ["true density", "NC-Bayes", "KDE time by time"]
    assert "2 chains of 10 + 20 sweeps: worst R-hat " in caption
    # Rows of a map are y and columns x: what has moved right and up stays there.
    corners, values = meshes[3].get_coordinates(), meshes[3].get_array()
    middles = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    simulate = {"figure1": ncb.datasets.growing_ring, "figureS1": ncb.datasets.moving_mixture}
    true = simulate[name](seed=density_figures.SEED).density(10, middles.reshape(-1, 2))
    np.testing.assert_allclose(values, true.reshape(values.shape), atol=1e-9)


def test_a_pole_of_the_truth_does_not_darken_the_rest():
    x = y = np.linspace(-1, 1, 50)
    flat = np.full((4, 50, 50), 0.2)
    poled, peaked = flat.copy(), flat.copy()
    poled[0, 25, 25], peaked[0, 25, 25] = 40.0, 0.31
    for truth, top, inside in ((poled, 0.3, False), (peaked, 0.31, True)):
        figure, bounded = density_figures.maps(x, y, truth, flat + 0.1, flat)
        assert figure.axes[0].collections[0].get_clim() == (0, pytest.approx(top))
        assert bounded == inside
        assert figure.axes[-1]._colorbar.extend == ("neither" if inside else "max")


def test_a_kept_fit_is_read_and_not_run_again(settings, monkeypatch):
    ring = ncb.datasets.growing_ring(times=3, n=20, seed=1)

    def fitted(settings, rows=60):
        return density_figures.fitted(settings, "ring", ring.points[:rows], ring.times[:rows])

    first = fitted(settings)
    (file,) = fits(settings)
    assert file.name.startswith("ring-10-20-")
    before = (file.read_bytes(), os.stat(file).st_mtime_ns)
    with monkeypatch.context() as patch:
        patch.setattr(ncb, "fit_density_over_time", refuse)
        np.testing.assert_array_equal(fitted(settings).theta, first.theta)
        assert (file.read_bytes(), os.stat(file).st_mtime_ns) == before
        # The twin: other sweeps and other data would have to be run.
        for given, rows in ((replace(settings, sweeps=(10, 21)), 60), (settings, 59)):
            with pytest.raises(AssertionError, match="must not be run again"):
                fitted(given, rows)
    assert fitted(replace(settings, sweeps=(10, 21))).theta.sizes["draw"] == 21
    assert len(fits(settings)) == 2


def test_a_digest_tells_data_and_options_apart():
    x = np.arange(6.0)
    given = {"noise_ratio": 1.0, "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk")}
    parts = [
        (x, given),
        (x + 1e-9, given),
        (x.reshape(2, 3), given),
        (x.astype("float32"), given),
        (x, {**given, "noise_ratio": 2.0}),
        (x, {**given, "prior": ncb.priors.RandomWalk(initial="separate")}),
    ]
    assert len({posteriors.digest(about) for about in parts}) == len(parts)
    assert posteriors.digest((x.copy(), dict(given))) == posteriors.digest(parts[0])
    # An address in memory would make every run another.
    for method in recording_figures.METHODS:
        assert " at 0x" not in repr(recording_figures.options(method, 60, 8))


def test_half_a_fit_is_not_kept(tmp_path):
    class Half:
        complete = False

    with pytest.raises(KeyboardInterrupt, match="the fit chain"):
        posteriors.kept(tmp_path, "chain", SHORT, (), Half)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", ["nothing", "csv", "csv and outline"])
def test_the_figure_of_incidents_says_whether_they_are_simulated(given, settings, tmp_path):
    simulated = given == "nothing"
    city = ncb.datasets.incidents(seed=1 if simulated else 2)
    if not simulated:
        city.save(tmp_path / "crime.csv")
        settings = replace(settings, files={".csv": tmp_path / "crime.csv"})
    if given == "csv and outline":
        (tmp_path / "outline.json").write_text(json.dumps(city.outline))
        settings = replace(settings, outline=tmp_path / "outline.json")
    figure, caption = drawn("figure2", settings)
    assert (crime_figure.STAND_IN in written(figure)) == simulated
    assert (crime_figure.STAND_IN in caption) == simulated
    assert ("Washington DC" in caption) == (not simulated)
    assert ("in a box" in caption) == (given == "csv")
    panels = figure.axes[:12]
    rows = [panels[k].get_ylabel() for k in (0, 4, 8)]
    assert rows == ["observed", "NC-Bayes", "KDE month by month"]
    # Points in the first row only, maps in the others on one scale.
    points = [panel.collections[0].get_offsets() for panel in panels[:4]]
    months = city.times.dt.month
    assert [len(each) for each in points] == [(months == m).sum() for m in (1, 5, 9, 12)]
    assert all(len(panel.collections) == 1 for panel in panels)
    assert len({panel.collections[0].get_clim() for panel in panels[4:]}) == 1


def test_the_chain_is_drawn_with_its_true_edges(settings):
    figure, caption = drawn("figure3", settings)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    simulated = torus_tables.simulated_data("chain", 1)
    posterior = ncb.load(fits(settings)[0])
    table = ncb.graphs.edges(posterior, threshold=0.1)
    chosen = zip(table["node1"], table["node2"], table["selected"], strict=True)
    found = {(one, other) for one, other, selected in chosen if selected}
    right = len(found & set(simulated.edges))
    assert f"true, found ({right})" in labels
    assert f"not true ({len(found) - right})" in labels
    assert f"Of the 11 true edges {right} are found; false ones: {len(found) - right}." in caption
    # One chain has an R-hat between its halves only, and never one of 0.
    worst = caption.split("between its halves ")[1].split(";")[0]
    assert float(worst) > 0.9


def test_figures_have_sweeps_of_their_own():
    """Those that nobody names: two numbers."""
    for module in (chain_figure, density_figures, recording_figures):
        tune, draws = module.SWEEPS
        assert 0 < tune < draws


def test_the_stand_in_has_the_papers_shape_and_pattern():
    found = recording_figures.stand_in()
    assert found.angles.data.shape == (840, 24)
    assert set(found.angles.regions.values()) == set(recording_figures.REGIONS)
    connected = {
        frozenset(found.angles.regions[node] for node in edge)
        for edge in found.edges
        if found.angles.regions[edge[0]] != found.angles.regions[edge[1]]
    }
    assert connected == set(map(frozenset, recording_figures.CONNECTED))
    # Neighbours within a region keep the lag that they were given.
    lags = found.angles.data[:, 0] - found.angles.data[:, 1]
    assert abs(np.angle(np.exp(1j * lags).mean()) - recording_figures.WITHIN[1]) < 0.2


def test_tau_is_the_papers():
    prior = recording_figures.options("NC-Bayes", 840, 24)["prior"]
    assert prior.tau == pytest.approx(ncb.priors.global_scale(979, 1152, 6 * 840))
    assert recording_figures.options("H-Bayes, w = 0.5", 840, 24)["engine"].learning_rate == 0.5


@pytest.fixture
def recording(tmp_path):
    """A file of the recording's layout, in another order of channels than the stand-in's."""
    regions = ["PFCv", "CA3", "CA3", "DG", "Sub", "Sub", "DG", "PFCv"]
    phases = np.random.default_rng(3).uniform(-np.pi, np.pi, (len(regions), 50))
    cells = np.array(regions, dtype=object)[:, None]
    savemat(tmp_path / "phases.mat", {"anglebeta": phases, "subregions": cells})
    return tmp_path / "phases.mat"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["figure4", "figure5", "figure6", "figure7"])
def test_figures_say_whether_the_recording_is_simulated(name, settings, recording):
    for given in (settings, replace(settings, files={".mat": recording})):
        figure, caption = drawn(name, given)
        simulated = not given.files
        assert (recording_figures.STAND_IN in written(figure)) == simulated
        assert (recording_figures.STAND_IN in caption) == simulated
        assert ("true edges" in caption) == (simulated and name in ("figure5", "figure6"))
        legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
        assert any("tru" in text for text in legends) == (simulated and name != "figure4")
    # Two data sets, and of each the fits of this figure.
    assert len(fits(settings)) == 2 * {"figure4": 0, "figure7": 4}.get(name, 1)


@pytest.mark.usefixtures("small")
def test_figures_of_the_recording_share_their_fits(settings, monkeypatch):
    figure, _ = drawn("figure7", settings)
    assert [axis.get_title() for axis in figure.axes] == list(recording_figures.METHODS)
    assert len({axis.get_xlim() for axis in figure.axes}) == 1
    monkeypatch.setattr(ncb, "fit", refuse)
    for name in ("figure5", "figure6"):
        drawn(name, settings)


@pytest.mark.usefixtures("small")
def test_intervals_are_those_of_the_posterior(settings):
    figure, _ = drawn("figure7", settings)
    recording = recording_figures.loaded(settings)
    posterior = recording_figures.fitted(settings, recording, "H-Bayes, w = 0.2")
    axis = figure.axes[1]
    first = figure.axes[0].get_yticklabels()[0].get_text().split("\n")
    assert {recording.angles.regions[node] for node in first} == {"CA3", "PFCv"}
    column = f"cos({first[0]} - {first[1]})"
    draws = posterior.theta.sel(statistic=column).to_numpy().ravel()
    lines = axis.collections[0].get_segments()[0]
    np.testing.assert_allclose(lines[:, 0], np.quantile(draws, [0.25, 0.75]))
    assert axis.collections[1].get_offsets()[0, 0] == pytest.approx(np.median(draws))


def test_a_recording_without_a_region_is_refused(settings, tmp_path):
    cells = np.array(["CA3", "DG", "DG"], dtype=object)[:, None]
    phases = np.zeros((3, 5)) + np.arange(5)
    savemat(tmp_path / "few.mat", {"anglebeta": phases, "subregions": cells})
    message = (
        "few.mat must have channels in CA3, DG, Sub, PFCv, got none in Sub, PFCv: pass the paper's "
        "recording, or no file for a simulated one"
    )
    with pytest.raises(ncb.InputError, match=message):
        drawn("figure4", replace(settings, files={".mat": tmp_path / "few.mat"}))

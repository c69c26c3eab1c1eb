"""Pictures of densities over space and time."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from PIL import Image

import ncbayes as ncb
from ncbayes import densities, plots
from ncbayes.contrast import statistic_names
from ncbayes.fields import Field
from ncbayes.models import RadialBasis
from ncbayes.spaces import Box, Projection, Region

FEW = {"size": 20, "draws": 20}
AROUND = Projection(-77.0, 60.0)
CORNERS = np.array([[-77.2, 60.0], [-77.0, 59.9], [-76.8, 60.0], [-77.0, 60.1]])
HOLE = np.array([[-77.05, 60.0], [-77.0, 59.98], [-76.95, 60.0], [-77.0, 60.02]])
CITY = Region((AROUND.forward(CORNERS), AROUND.forward(HOLE)))
SOME = AROUND.inverse(CITY.uniform(60, np.random.default_rng(2)))


def made(space, axes, times=3, projection=None, numbers=False):
    """A posterior by hand with some data at every time but the second."""
    rng = np.random.default_rng(1)
    low, high = space.bounds
    centers = low + (high - low) * rng.uniform(0.2, 0.8, (4, len(axes)))
    model = RadialBasis(centers, float(np.max(high - low)) / 3, space)
    stamps = np.arange(1.0, times + 1) if numbers else None
    field = Field(model, axes, stamps, projection)
    labels = [str(k + 1) if numbers else f"part {k + 1}" for k in range(times)]
    theta = rng.normal(0, 2, (1, 30, times, 4))
    groups = np.repeat([label for k, label in enumerate(labels) if k != 1], 5)
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {"theta": (("chain", "draw", "group", "statistic"), theta)},
                {"group": labels, "statistic": statistic_names(model)},
            ),
            "field": field.dataset(),
            "observed_data": xr.Dataset(
                {"points": (("row", "axis"), space.uniform(len(groups), rng))},
                {"group": ("row", groups)},
            ),
        }
    )
    tree.attrs = {"model": repr(model)}
    return ncb.Posterior(tree)


@pytest.fixture(scope="module")
def box():
    return made(Box((0, 0), (4, 3)), ("x", "y"))


@pytest.fixture(scope="module")
def city():
    return made(CITY, ("lon", "lat"), projection=AROUND)


@pytest.fixture(scope="module")
def one():
    return made(Box([0], [2]), ("height",))


@pytest.fixture(scope="module")
def kernels():
    when = np.repeat([1, 3], 30)
    outline = [CORNERS.tolist(), HOLE.tolist()]
    outline = {"type": "Polygon", "coordinates": [[*ring, ring[0]] for ring in outline]}
    return ncb.baselines.kde_over_time(SOME, when, domain=outline, every=1, coordinates="degrees")


def panels(figure):
    return [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]


def bar(figure):
    return next(axis for axis in figure.axes if axis.get_label() == "<colorbar>")


def test_maps_share_one_scale_of_colours_and_show_the_mean(box, drawn):
    figure = drawn(plots.density_maps(box, **FEW))
    data = densities.density(box, **FEW)
    axes = panels(figure)
    assert [axis.get_title() for axis in axes] == [
        "part 1 (n = 5)",
        "part 2 (n = 0)",
        "part 3 (n = 5)",
    ]
    for k, axis in enumerate(axes):
        (image,) = axis.images
        np.testing.assert_allclose(image.get_array(), data["mean"][k])
        assert image.get_clim() == (0, data["mean"].max().item())
        assert image.get_extent() == [0, 4, 0, 3]
        assert axis.get_aspect() == 1
        assert len(axis.collections[0].get_offsets()) == (0 if k == 1 else 5)
    assert bar(figure).get_ylabel() == "density per unit area"
    bare = panels(plots.density_maps(box, points=False, **FEW))
    assert not any(axis.collections for axis in bare)


def test_degrees_are_drawn_as_long_as_they_are_with_outline_and_hole(city, drawn):
    figure = drawn(plots.density_maps(city, [0, -1], False, **FEW))
    axes = panels(figure)
    assert axes[0].get_aspect() == pytest.approx(2.0)  # 1 / cos(60 degrees)
    assert bar(figure).get_ylabel() == "density per km²"
    (outline,) = axes[0].patches
    low, high = outline.get_path().get_extents().get_points()
    np.testing.assert_allclose([low, high], [[-77.2, 59.9], [-76.8, 60.1]])
    # The line and points on it are clear of the frame.
    assert axes[0].get_xlim() == pytest.approx((-77.208, -76.792))
    assert axes[0].get_ylim() == pytest.approx((59.896, 60.104))
    pixels = np.asarray(figure.canvas.buffer_rgba())
    white = []
    for place in ([-77.11, 60.003], [-77.0, 60.0], [-77.19, 60.05]):  # inside, hole, outside
        column, row = axes[1].transData.transform(place).round().astype(int)
        white.append(bool((pixels[len(pixels) - row, column] == 255).all()))
    assert white == [False, True, True]
    places = panels(plots.density_maps(city, **FEW))[0].collections[0].get_offsets()
    assert CITY.contains(AROUND.forward(places)).all()
    assert figure._supxlabel.get_text() == "lon"


@pytest.mark.parametrize(("times", "shown"), [(1, 1), (2, 2), (5, 5), (12, 12), (30, 12)])
def test_at_most_twelve_times_are_shown_evenly_chosen(times, shown, drawn):
    posterior = made(Box((0, 0), (1, 3)), ("x", "y"), times)
    axes = panels(drawn(plots.density_maps(posterior, **FEW)))
    titles = [int(re.match(r"part (\d+)", axis.get_title())[1]) for axis in axes]
    assert len(titles) == shown
    assert titles[0] == 1
    assert titles[-1] == times
    assert len(set(np.diff(titles))) <= 2


def test_numbers_that_are_times_are_not_taken_for_positions():
    posterior = made(Box((0, 0), (4, 3)), ("x", "y"), numbers=True)
    titles = [axis.get_title() for axis in panels(plots.density_maps(posterior, **FEW))]
    assert titles == ["1 (n = 5)", "2 (n = 0)", "3 (n = 5)"]
    picked = panels(plots.density_maps(posterior, [3, 1], **FEW))
    assert [axis.get_title()[0] for axis in picked] == ["3", "1"]


def test_numbers_stand_below_the_lowest_panel_of_every_column(drawn):
    posterior = made(Box((0, 0), (4, 3)), ("x", "y"), 5)
    axes = panels(drawn(plots.density_maps(posterior, **FEW)))
    below = [any(text.get_visible() and text.get_text() for text in axis.get_xticklabels())
             for axis in axes]  # fmt: skip
    assert below == [False, False, True, True, True]


def test_uncertainty_is_the_sd_or_its_share_of_the_mean(city, drawn):
    data = densities.density(city, **FEW)
    inside = np.isfinite(data["mean"].to_numpy())
    figure = drawn(plots.uncertainty_maps(city, **FEW))
    found = np.stack([axis.images[0].get_array() for axis in panels(figure)])
    np.testing.assert_allclose(found[inside], data["sd"].to_numpy()[inside])
    assert bar(figure).get_ylabel() == "posterior sd of the density per km²"
    figure = drawn(plots.uncertainty_maps(city, relative=True, **FEW))
    found = np.stack([axis.images[0].get_array() for axis in panels(figure)])
    ratio = (data["sd"] / data["mean"]).to_numpy()
    enough = (data["mean"] > 0.01 * data["mean"].max()).to_numpy()
    np.testing.assert_allclose(found[inside & enough], ratio[inside & enough])
    assert (found[inside & ~enough] == -1).all()  # below the scale: grey
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text() == "mean below 1 % of its highest value"


def test_a_change_is_centred_at_zero_and_hatched_where_uncertain(box, drawn):
    figure = drawn(plots.change_map(box, "part 1", "part 3", **FEW))
    data = densities.change(box, 0, 2, **FEW)
    (axis,) = panels(figure)
    (image,) = axis.images
    np.testing.assert_allclose(image.get_array(), data["mean"])
    low, high = image.get_clim()
    assert low == -high
    assert high == np.abs(data["mean"]).max()
    hatched = next(each for each in axis.collections if getattr(each, "hatches", None))
    assert list(hatched.levels) == [pytest.approx(0.05), 0.95]
    (legend,) = figure.legends
    text = legend.get_texts()[0].get_text()
    assert text == "probability of an increase between 5 % and 95 %"
    assert axis.get_title() == "part 1 to part 3"
    shown = bar(figure)
    assert shown.get_ylabel() == "change of the density per unit area"
    boxes = [legend.get_window_extent(), axis.title.get_window_extent(),
             figure._supxlabel.get_window_extent(), shown.get_window_extent()]  # fmt: skip
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])


def test_bands_of_one_dimension(one, drawn):
    figure = drawn(plots.density_bands(one, interval="hpd", level=0.8, size=50, draws=30))
    data = densities.density(one, interval="hpd", level=0.8, size=50, draws=30)
    for k, axis in enumerate(figure.axes):
        line = axis.lines[0]
        np.testing.assert_allclose(line.get_xdata(), data["height"])
        np.testing.assert_allclose(line.get_ydata(), data["mean"][k])
        corners = axis.collections[0].get_paths()[0].vertices
        assert corners[:, 1].max() == pytest.approx(data["high"][k].max().item())
        assert len(axis.lines[1].get_xdata()) == (0 if k == 1 else 5)
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["posterior mean", "80 % interval (hpd), point by point"]
    assert figure._supylabel.get_text() == "density per unit length"


def test_maps_of_kernels(kernels, drawn, tmp_path):
    figure = drawn(plots.density_maps(kernels, size=20))
    mean = densities.density(kernels, size=20)["mean"].to_numpy()
    titles = [axis.get_title() for axis in panels(figure)]
    assert titles == ["1 (n = 30)", "2 (n = 0)", "3 (n = 30)"]
    inside = np.isfinite(mean)
    found = np.stack([axis.images[0].get_array() for axis in panels(figure)])
    np.testing.assert_allclose(found[inside], mean[inside])
    places = panels(figure)[2].collections[0].get_offsets()
    np.testing.assert_allclose(places, SOME[30:])
    assert bar(figure).get_ylabel() == "kernel density estimate per km²"
    plots.animation(kernels, tmp_path / "film.gif", size=20)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 3


def test_kernels_of_one_dimension_are_lines_without_a_band(drawn):
    heights = np.random.default_rng(3).normal(size=40)
    kde = ncb.baselines.kde_over_time(heights, np.repeat(["a", "b"], 20))
    figure = drawn(plots.density_bands(kde, size=50))
    data = densities.density(kde, size=50)
    for k, axis in enumerate(figure.axes):
        np.testing.assert_allclose(axis.lines[0].get_ydata(), data["mean"][k])
        assert not axis.collections
        np.testing.assert_allclose(axis.lines[1].get_xdata(), heights[20 * k : 20 * k + 20])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["kernel density estimate (no interval)"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (plots.uncertainty_maps, "plots.uncertainty_maps needs .* none: use plots.density_maps,"),
        (lambda kde: plots.change_map(kde, 1, 3), "plots.change_map needs .* densities.change,"),
    ],
)
def test_pictures_of_what_draws_tell_are_refused_for_kernels(ask, message, kernels):
    with pytest.raises(ncb.InputError, match=message):
        ask(kernels)


def test_animations_hold_a_frame_a_time(city, tmp_path):
    plots.animation(city, tmp_path / "film.gif", seconds=0.5, **FEW)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 3
        assert film.info["duration"] == 500
    plots.animation(city, str(tmp_path / "film.html"), points=False, **FEW)
    page = (tmp_path / "film.html").read_text()
    assert page.count("data:image/png;base64") == 3
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p, one: plots.density_maps(one), "density_maps shows densities of 2 dimensions, "
         "this one has 1; use plots.density_bands"),
        (lambda p, one: plots.density_bands(p), "density_bands shows densities of 1 dimension, "
         "this one has 2; use plots.density_maps"),
        (lambda p, one: plots.density_maps(made(Box([0] * 3, [1] * 3), ("a", "b", "c"))),
         "this one has 3; use ncbayes.densities.density"),
        (lambda p, one: plots.density_maps(p, [0] * 13), "density_maps shows at most 12 times, g"),
        (lambda p, one: plots.uncertainty_maps(p, ["none"]), "each of times must be one of the 3"),
        (lambda p, one: plots.change_map(p, 0, 9), "end must be one of the 3 times"),
        (lambda p, one: plots.change_map(4, 0, 1), "plots.change_map needs the posterior that nc"),
        (lambda p, one: plots.animation(p, "film.mp4"), "end in .gif or .html, got 'film.mp4'"),
        (lambda p, one: plots.animation(p, 3), "path must be the name of a file, got 3"),
        (lambda p, one: plots.animation(p, "none/film.gif"), "there is no such folder"),
        (lambda p, one: plots.animation(p, "film.gif", seconds=0), "seconds must be a positive nu"),
    ],
)  # fmt: skip
def test_errors_say_what_was_wrong(ask, message, box, one):
    with pytest.raises(ncb.InputError, match=message):
        ask(box, one)


def test_maps_much_longer_than_wide_fill_their_panels(drawn):
    posterior = made(Box((0, 0), (1, 50)), ("x", "y"))
    figure = drawn(plots.density_maps(posterior, **FEW))
    assert panels(figure)[0].get_aspect() == "auto"
    assert max(figure.get_size_inches()) < 20


def test_maps_without_stored_data_have_no_points(box, drawn):
    tree = box.data.copy()
    del tree["observed_data"]
    axes = panels(drawn(plots.density_maps(ncb.Posterior(tree), **FEW)))
    assert axes[0].get_title() == "part 1 (n = 0)"

"""The report in a real browser: sliders, hover, keys, phones, contrast, time to open."""

import json
import re
import warnings
from itertools import pairwise

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.couplings import graph_in
from ncbayes.diagnosis import most_different
from ncbayes.webreport import maps

# The script writes no-break spaces between a number and its sign.
SPACE = "\u00a0"
PHONE = 360


def three(value):
    """As the page shows it: a number of 32 bits to three decimals, zero without a sign."""
    text = f"{float(np.float32(value)):.3f}"
    return text.removeprefix("-") if float(text) == 0 else text


def percent(share):
    return f"{100 * share:.1f}{SPACE}%"


def edges(graph, page, rule="median", group="task"):
    """``graphs.edges`` at the threshold that the page shows."""
    threshold = float(page.locator("#threshold").get_attribute("aria-valuetext"))
    return ncb.graphs.edges(graph, rule, threshold, group=group)


def selected(page):
    return int(re.match(r"(\d+) of 10 pairs are selected", page.locator("#count").inner_text())[1])


def panel_of(page):
    """Names, norm, probability, strength, and for each coefficient median and interval."""
    panel = page.locator("#edge-panel")
    rows = panel.locator("tbody tr").all()
    return {
        "names": panel.locator("h3").inner_text(),
        "norm": panel.locator("#edge-norm").inner_text(),
        "probability": panel.locator("#edge-probability").inner_text(),
        "strength": panel.locator("#edge-strength").inner_text(),
        "kinds": {
            row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows
        },
    }


def expected_panel(row, kinds):
    return {
        "names": f"{row['node1']} and {row['node2']}",
        "norm": three(row["norm"]),
        "probability": percent(row["probability"]),
        "strength": three(row["strength"]),
        "kinds": {
            kind: [three(row[kind]), f"{three(row[kind + '_low'])} to {three(row[kind + '_high'])}"]
            for kind in kinds
        },
    }


def edge_number(graph, row):
    return graph_in(graph.data).edges.index((row["node1"], row["node2"]))


def point_at_edge(page, number):
    """Move the mouse to the middle of an edge."""
    page.locator("#network").scroll_into_view_if_needed()
    x, y = page.evaluate(
        """number => {
            const line = document.querySelector(`#network line[data-edge="${number}"]`);
            const at = ["x1", "x2", "y1", "y2"].map((name) => Number(line.getAttribute(name)));
            const middle = new DOMPoint((at[0] + at[1]) / 2, (at[2] + at[3]) / 2);
            const found = middle.matrixTransform(line.getScreenCTM());
            return [found.x, found.y];
        }""",
        number,
    )
    page.mouse.move(x, y)


def click_slider(page, name, share):
    """Click at this share of the slider's length."""
    slider = page.locator(name)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def test_the_threshold_selects_edges_by_keyboard_and_by_mouse(opened, graph):
    page = opened("graph")
    assert page.locator("#threshold").get_attribute("aria-valuetext") == "0.1"
    page.get_by_label("median", exact=True).check()
    assert selected(page) == edges(graph, page)["selected"].sum()
    page.locator("#threshold").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    few = edges(graph, page)
    assert few.attrs["threshold"] > 0.1
    assert selected(page) == few["selected"].sum()
    before = selected(page)
    click_slider(page, "#threshold", 0.6)
    assert selected(page) == edges(graph, page)["selected"].sum() < before
    assert page.locator("#network .edges line").count() == selected(page)
    page.locator("#threshold").press("End")
    assert selected(page) == 0
    page.locator("#threshold").press("Home")
    assert page.locator("#threshold").get_attribute("aria-valuetext") == "0"
    assert selected(page) == 10


def test_rule_and_group_change_what_is_selected(opened, graph):
    page = opened("graph")
    assert selected(page) == edges(graph, page, "interval")["selected"].sum()
    page.get_by_label("Group").select_option(label="rest")
    assert selected(page) == edges(graph, page, "interval", "rest")["selected"].sum()
    page.get_by_label("median", exact=True).check()
    assert selected(page) == edges(graph, page, "median", "rest")["selected"].sum()
    row = edges(graph, page, "median", "rest").iloc[0]
    point_at_edge(page, edge_number(graph, row))
    assert panel_of(page) == expected_panel(row, graph_in(graph.data).kinds)


@pytest.mark.parametrize("rank", [0, 3])
def test_hover_reads_the_numbers_of_graphs_edges(opened, graph, rank):
    page = opened("graph")
    assert "Point at an edge" in page.locator("#edge-panel").inner_text()
    row = edges(graph, page).iloc[rank]
    point_at_edge(page, edge_number(graph, row))
    kinds = graph_in(graph.data).kinds
    assert panel_of(page) == expected_panel(row, kinds)
    lag = ncb.graphs.phase_difference(graph, group="task").iloc[edge_number(graph, row)]
    words = page.locator("#edge-lag").inner_text()
    assert f": {lag['angle']:.2f} radians (" in words
    assert f"{lag['angle_low']:.2f} to {lag['angle_high']:.2f} radians" in words
    # With another threshold the probability in the panel is another one.
    page.locator("#threshold").press("End")
    again = edges(graph, page).set_index(["node1", "node2"]).loc[(row["node1"], row["node2"])]
    assert (
        panel_of(page)["probability"]
        == percent(again["probability"])
        != percent(row["probability"])
    )
    assert "equal-tailed 90 % intervals" in page.locator("#edge-panel").inner_text().replace(
        SPACE, " "
    )


def test_edges_are_read_by_keys_too(opened, graph):
    page = opened("graph")
    page.get_by_label("median", exact=True).check()
    table, kinds = edges(graph, page), graph_in(graph.data).kinds
    page.locator("#search").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "network"
    assert panel_of(page) == expected_panel(table.iloc[0], kinds)
    page.keyboard.press("ArrowRight")
    assert panel_of(page) == expected_panel(table.iloc[1], kinds)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    last = table[table["selected"]].iloc[-1]
    assert panel_of(page) == expected_panel(last, kinds)
    # A region that is replaced is not read out: it must be the panel that stays.
    assert page.locator("#edge-panel").get_attribute("aria-live") == "polite"
    assert page.locator("#edge-panel [aria-live]").count() == 0
    first = table.iloc[0]
    for key, row in (
        ("ArrowLeft", last),
        ("ArrowUp", last),
        ("ArrowRight", first),
        ("ArrowDown", first),
    ):
        page.keyboard.press("Escape")
        assert "Point at an edge" in page.locator("#edge-panel").inner_text()
        page.keyboard.press(key)
        assert panel_of(page) == expected_panel(row, kinds)


def test_a_node_is_found_and_enter_goes_to_its_edges(opened, graph):
    page = opened("graph")
    page.locator("#search").fill("BOLD")
    node = list(graph_in(graph.data).nodes).index("<b>bold</b>")
    sizes = page.locator("#network circle[data-node]").evaluate_all(
        "all => all.map((each) => Number(each.getAttribute('r')))"
    )
    assert int(np.argmax(sizes)) == node
    assert sorted(sizes)[-2] < max(sizes)
    own = edges(graph, page)
    own = own[own["selected"] & ((own["node1"] == "<b>bold</b>") | (own["node2"] == "<b>bold</b>"))]
    assert f"<b>bold</b>: {len(own)} selected edges." in page.locator("#count").inner_text()
    rows = page.locator("section table").first.locator("tbody tr")
    names = [row.locator("th, td").all_inner_texts()[:2] for row in rows.all()]
    assert sorted(map(tuple, names)) == sorted(zip(own["node1"], own["node2"], strict=True))
    faint = page.locator('#network .edges line[stroke-opacity="0.12"]').count()
    assert faint == selected(page) - len(own) > 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "network"
    assert panel_of(page)["names"] == f"{own.iloc[0]['node1']} and {own.iloc[0]['node2']}"
    page.locator("#search").fill("nobody")
    assert "No node has such a name." in page.locator("#count").inner_text()


def test_the_table_sorts_and_follows_the_filter(opened, graph):
    page = opened("graph")
    page.get_by_label("median", exact=True).check()
    table = page.locator(".scroll[aria-label=Edges]")
    expected = edges(graph, page).query("selected")
    assert table.locator("tbody tr").count() == len(expected)
    first = table.locator("tbody tr").first.locator("th, td").all_inner_texts()
    assert first[:3] == [*expected.iloc[0][["node1", "node2"]], three(expected["strength"].max())]
    table.get_by_role("button", name="norm").click()
    norms = table.locator("tbody tr td:nth-child(4)").all_inner_texts()
    assert norms == [three(value) for value in sorted(expected["norm"], reverse=True)]
    heads = table.locator("thead th").evaluate_all("all => all.map((each) => each.ariaSort)")
    assert heads[:4] == ["none", "none", "none", "descending"]
    table.get_by_role("button", name="norm").press("Enter")
    assert table.locator("tbody tr td:nth-child(4)").all_inner_texts() == norms[::-1]


def point_at_cell(page, found, row, column):
    """Move the mouse to the middle of a cell; margins of the map are those of its script."""
    page.locator("#map").scroll_into_view_if_needed()
    box, (rows, columns) = page.locator("#map").bounding_box(), found["mean"].shape[1:]
    left, top, below = 62, 10, 44
    tall = box["height"] - top - below
    data = json.loads(page.locator("#data").inner_text())
    wide = tall / data["view"]["map"]["tall"]
    x = box["x"] + left + (column + 0.5) / columns * wide
    page.mouse.move(x, box["y"] + top + (rows - row - 0.5) / rows * tall)


@pytest.fixture(scope="module")
def maps_of_city(city):
    return ncb.densities.density(city, size=maps.CELLS, draws=maps.MOST_DRAWS)


def highest(found, time):
    values = np.nan_to_num(found["mean"].to_numpy()[time])
    return tuple(int(k) for k in np.unravel_index(values.argmax(), values.shape))


def cell(page):
    return {
        name: page.locator(f"#cell-{name}").inner_text()
        for name in ("mean", "interval", "sd", "change", "rise", "words")
        if page.locator(f"#cell-{name}").count()
    }


def expected_cell(found, time, row, column, decimals):
    at = {name: float(found[name].to_numpy()[time, row, column]) for name in found}
    return {
        "mean": f"{at['mean']:.{decimals}f} per square kilometer",
        "interval": f"{at['low']:.{decimals}f} to {at['high']:.{decimals}f}",
        "sd": f"{at['sd']:.{decimals}f}",
    }


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def decimals_of(text):
    return len(text.split()[0].partition(".")[2])


def test_the_map_is_read_by_pointer_and_time_by_the_slider(opened, maps_of_city):
    page = opened("city")
    assert "Point at the map" in page.locator("#cell-panel").inner_text()
    for key, time in (("Home", 0), ("End", 2), ("ArrowLeft", 1)):
        page.locator("#time").press(key)
        label = str(maps_of_city["label"].to_numpy()[time])
        assert page.locator("#time").get_attribute("aria-valuetext").startswith(f"{label} (")
        row, column = highest(maps_of_city, time)
        point_at_cell(page, maps_of_city, row, column)
        got = cell(page)
        words = got.pop("words")
        assert got == expected_cell(maps_of_city, time, row, column, decimals_of(got["mean"]))
        assert decimals_of(got["mean"]) >= 4
        place = numbers(words)
        at = [float(maps_of_city[name].to_numpy()[k])
              for name, k in (("LONGITUDE", column), ("LATITUDE", row))]  # fmt: skip
        np.testing.assert_allclose(place, at, atol=1e-4)
        assert page.locator("#cell-panel h3").inner_text() == label
    click_slider(page, "#time", 0.98)
    assert page.locator("#time").input_value() == "2"


def test_arrow_keys_walk_over_the_map(opened, maps_of_city):
    page = opened("city")
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")  # the first key goes to the highest density
    row, column = highest(maps_of_city, 0)
    decimals = decimals_of(cell(page)["mean"])
    for key, up, right in (
        ("ArrowRight", 0, 1),
        ("ArrowUp", 1, 0),
        ("ArrowLeft", 0, -1),
        ("ArrowDown", -1, 0),
    ):
        page.keyboard.press(key)
        row, column = row + up, column + right
        assert cell(page)["mean"] == expected_cell(maps_of_city, 0, row, column, decimals)["mean"]
    for _ in range(maps.CELLS):
        page.keyboard.press("ArrowUp")
    assert page.locator("#cell-panel h3").inner_text() == "Outside"


def test_change_has_its_interval_and_probability_forwards_and_backwards(opened, city, maps_of_city):
    page = opened("city")
    page.get_by_label("change", exact=True).check()
    # From the first time to itself there is no change: the slider goes to the last.
    assert page.locator("#time").input_value() == "2"
    options = {"size": maps.CELLS, "draws": maps.MOST_DRAWS}
    data = ncb.densities.change(city, "2023-01", "2023-03", **options)
    # A cell that tells forwards from backwards, where one draw in 80 makes no half percent.
    chance = data["probability"].to_numpy()
    row, column = np.argwhere(np.isclose(chance, 61 / 80))[0]
    at = {name: float(each.to_numpy()[row, column]) for name, each in data.items()}
    point_at_cell(page, maps_of_city, row, column)
    for sign, rise, ends in ((1, 76, ["low", "high"]), (-1, 24, ["high", "low"])):
        got = cell(page)
        last = 10.0 ** -decimals_of(got["change"])
        # Means are rounded before they are subtracted.
        assert numbers(got["change"]) == pytest.approx([sign * at["mean"]], abs=1.01 * last)
        expected = [sign * at[name] for name in ends]
        assert numbers(got["interval"]) == pytest.approx(expected, abs=0.51 * last)
        assert got["rise"] == f"{rise}{SPACE}%"
        page.get_by_label("Change since").select_option(label="2023-03")
        page.locator("#time").press("Home")
    page.locator("#time").press("End")
    assert cell(page)["change"] == "none: the two times are the same"


def pixels(page):
    return page.locator("#map").evaluate("map => map.toDataURL()")


def test_modes_and_points_change_the_picture_and_the_scale(opened, maps_of_city):
    page = opened("city")
    scale = page.locator(".scale")
    assert "Density, per square kilometer" in scale.inner_text()
    top = float(scale.locator(".ends span").last.inner_text())
    assert top == pytest.approx(float(maps_of_city["mean"].max()), rel=0.01)
    assert page.get_by_label("Change since").is_hidden()
    pictures = [pixels(page)]
    page.get_by_label("Data points").uncheck()
    pictures.append(pixels(page))
    page.get_by_label("uncertainty").check()
    top = float(scale.locator(".ends span").last.inner_text())
    assert top == pytest.approx(float(maps_of_city["sd"].max()), rel=0.01)
    pictures.append(pixels(page))
    page.get_by_label("change", exact=True).check()
    assert page.get_by_label("Change since").is_visible()
    ends = [float(text) for text in scale.locator(".ends span").all_inner_texts()]
    assert ends[0] == -ends[2] < 0 == ends[1]
    pictures.append(pixels(page))
    page.locator("#time").press("ArrowLeft")
    pictures.append(pixels(page))
    assert len(set(pictures)) == 5


def test_times_play_unless_less_motion_is_wanted(opened):
    from playwright.sync_api import expect

    page = opened("city")
    page.get_by_role("button", name="Play").click()
    assert page.locator("#play").inner_text() == "Pause"
    expect(page.locator("#time")).to_have_value("1")
    page.get_by_role("button", name="Pause").click()
    stopped = page.locator("#time").input_value()
    page.wait_for_timeout(1200)
    assert page.locator("#time").input_value() == stopped
    calm = opened("city", reduced_motion="reduce")
    assert calm.locator("#play").is_disabled()
    assert "less motion" in calm.locator("#play").inner_text()


def test_sixty_months_have_changes_without_an_interval(opened):
    page = opened("sixty")
    page.get_by_label("change", exact=True).check()
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    assert {"change", "rise"} <= set(cell(page))
    assert "interval" not in cell(page)


def test_very_many_months_say_that_the_grid_is_coarser(opened):
    page = opened("four_hundred")
    words = page.locator("section", has=page.locator("#map")).locator("p").first.inner_text()
    size = json.loads(page.locator("#data").inner_text())["view"]["map"]["size"]
    sentence = "So that all 400 times fit into the page, the grid has {} cells along the longer"
    assert f"{sentence.format(size)} side, not 60." in words
    assert "So that all" not in opened("sixty").locator("#main").inner_text()


# How many cells are hatched when the map is drawn anew.
CELLS_HATCHED = """() => {
    let cells = 0;
    const rect = Path2D.prototype.rect;
    Path2D.prototype.rect = function (...box) { cells += 1; return rect.apply(this, box); };
    document.querySelector("#time").dispatchEvent(new Event("input"));
    Path2D.prototype.rect = rect;
    return cells;
}"""


@pytest.mark.parametrize(("risen", "hatched"), [(473, True), (475, False), (25, False), (27, True)])
def test_hatched_is_what_is_open_before_rounding(
    opened, city, tmp_path, monkeypatch, risen, hatched
):
    monkeypatch.setattr(maps, "CELLS", 12)
    exact = maps._percents
    monkeypatch.setattr(maps, "_percents", lambda own, draws: exact(0 * own + risen, 500))
    page = opened(ncb.webreport.write(city, tmp_path / "a.html"))
    page.get_by_label("change", exact=True).check()
    assert (page.evaluate(CELLS_HATCHED) > 0) == hatched
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    assert cell(page)["rise"] == f"{95 if risen > 250 else 5}{SPACE}%"


def test_rounds_of_the_noise_are_shown(opened, tmp_path):
    data = ncb.models.VonMises().sample(np.array([1.0, 0.5]), 60, np.random.default_rng(1))
    options = {"draws": 40, "tune": 40, "chains": 2, "seed": 1, "cores": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(ncb.models.VonMises(), data, **options)
    rounds = posterior.noise_report().rounds
    text = opened(ncb.webreport.write(posterior, tmp_path / "a.html")).locator("#main").inner_text()
    shown = text[text.index("How the noise was made") :].splitlines()
    last = next(line for line in shown if line.startswith(f"{len(rounds)}\tall\t"))
    near, moved = rounds["near"].iloc[-1], rounds["moved"].iloc[-1]
    assert last.split("\t")[2] == f"{100 * near:.0f}{SPACE}%"
    assert last.split("\t")[-2:] == [f"{moved:.2f}", "yes"]
    assert "How the noise was made" not in opened("pooled").locator("#main").inner_text()


def test_the_legend_counts_rows_once_and_noise_sets(opened, pooled):
    points = pooled.data["noise"].sizes["noise_row"]
    text = opened("pooled").locator("#main").inner_text()
    assert "data (60)" in text
    assert f"noise ({points} in 2 sets)" in text
    assert "in 1 sets" not in opened("angles").locator("#main").inner_text()


def test_a_curve_is_read_by_pointer_and_keys(opened, line):
    page = opened("line")
    found = ncb.densities.density(line, size=maps.CURVE, draws=maps.MOST_DRAWS)
    page.locator("#time").press("End")
    page.locator("#curve").focus()
    for _ in range(41):
        page.keyboard.press("ArrowRight")
    got = cell(page)
    decimals = decimals_of(got["mean"])
    mean, low, high = (float(found[name].to_numpy()[1, 40]) for name in ("mean", "low", "high"))
    assert got["mean"] == f"{mean:.{decimals}f} per unit length"
    assert got["interval"] == f"{low:.{decimals}f} to {high:.{decimals}f}"
    box = page.locator("#curve").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert cell(page)["words"] != got["words"]


def test_parameters_are_searched(opened, angles):
    page = opened("angles")
    rows = page.locator("section .scroll table").filter(has_text="parameter").locator("tbody tr")
    assert rows.count() == 3
    page.get_by_label("Find a parameter").fill("log_z")
    assert rows.count() == 1
    summary = angles.summary(level=0.9).loc["log_z"]
    cells = rows.first.locator("td").all_inner_texts()
    assert float(cells[0]) == pytest.approx(summary["mean"], rel=0.005)
    low, high = (float(text) for text in cells[2].split(" to "))
    np.testing.assert_allclose([low, high], summary[["eti90_low", "eti90_high"]], rtol=0.005)
    assert "1 of 3 parameters are shown" in page.locator("#main").inner_text()


ICONS = {"good": "✓", "fair": "≈", "poor": "⚠", "failed": "✕"}


def flat(text):
    return " ".join(text.split())


def part(page, title):
    """The section with this heading."""
    heading = page.get_by_role("heading", name=title, exact=True, level=2)
    return page.locator("section", has=heading)


def test_verdicts_say_in_words_what_their_colours_say(opened, graph):
    page = opened("graph")
    verdict = graph.verdict()
    boxes = page.locator(".verdict")
    convergence = verdict.of("convergence")[0]
    heads = [flat(text) for text in boxes.locator("h3").all_inner_texts()]
    assert heads[0] == f"Convergence: {ICONS[convergence.grade]} {convergence.grade}"
    assert heads[1].startswith("Comparison points (noise): ")
    for concern in verdict.concerns:
        assert concern.line[1:] in page.locator(".verdicts").inner_text()
    text = page.locator("#main").inner_text()
    assert "ncbayes fit RUN/run.toml" in text
    assert "Sonobe, Sugasawa, Mochihashi, Matsuda" in text
    assert page.locator(".small figure svg path").count() >= 6 * 4


@pytest.mark.parametrize("name", ["failed", "angles", "city", "unverified"])
def test_the_first_line_after_the_title_is_the_verdict_and_then_the_next_step(
    opened, name, request
):
    verdict = request.getfixturevalue(name).verdict()
    page = opened(name)
    after = page.locator("h1 + div")
    assert after.get_attribute("id") == "verdict"
    lines = [flat(text) for text in after.locator("p").all_inner_texts()]
    assert lines[0] == f"{ICONS[verdict.grade]} {verdict.grade} {verdict.line}"
    if verdict.next_step:
        assert lines[1].lower() == f"next: {flat(verdict.next_step).lower()}."
    assert ("noise" in "".join(lines[:2])) == any(
        line.startswith("Noise means comparison points here") for line in lines
    )


def test_grades_have_four_colours_with_contrast(opened):
    page = opened("angles")
    page.evaluate(
        """grades => document.querySelector("#main p").append(...grades.map((grade) => {
            const badge = document.createElement("span");
            badge.className = `badge ${grade}`;
            badge.textContent = grade;
            return badge;
        }))""",
        list(ICONS),
    )
    colours = (
        page.locator("#main p")
        .first.locator(".badge")
        .evaluate_all("all => all.map((each) => getComputedStyle(each).backgroundColor)")
    )
    assert len(set(colours)) == len(colours) == 4
    assert page.evaluate(PALE) == []


def test_a_failed_fit_has_a_banner_directly_above_every_result(opened, failed):
    page = opened("failed")
    words = f"The fit has failed, do not use what is shown here: {failed.verdict().reason}."
    banners = page.locator(".banner")
    assert {flat(text) for text in banners.all_inner_texts()} == {f"✕ {words}"}
    assert all(banner.is_visible() for banner in banners.all())
    above = page.locator(".banner + *")
    assert above.count() == banners.count()
    assert above.first.locator("#network").count() == 1
    tables = page.locator(".scroll[aria-label=Edges]")
    assert page.locator(".banner + div", has=tables).count() == 1
    others = part(page, "Other parameters")
    assert others.locator(".banner + .scroll").count() == others.locator(".scroll").count() == 3
    others.get_by_label("Find a parameter").fill("log_z")
    assert others.locator(".banner + .scroll").count() == others.locator(".scroll").count() == 1
    assert opened("angles").locator(".banner").count() == 0


def test_predictions_show_every_score_and_what_differs_most(opened, failed):
    stored = failed.data["verification"].to_dataset()
    page = opened("failed")
    predictions = part(page, "Predictions")
    (concern,) = failed.verdict().of("predictions")
    assert f"⚠ poor D{flat(concern.line)[1:]}." in flat(predictions.inner_text())
    places = {
        kind: re.findall(
            r"M([\d.]+),([\d.]+)h0", predictions.locator(f"path.{kind}").get_attribute("d")
        )
        for kind in ("near", "far")
    }
    assert len(places["near"]) + len(places["far"]) == stored.sizes["compared"]
    beyond = int((np.abs(stored["z"]) > 12).sum())
    limit = json.loads(page.locator("#data").inner_text())["predictions"]["limit"]
    assert len(places["far"]) == int((np.abs(stored["z"]) > limit).sum()) >= beyond > 0
    # Beyond 12 all stand at the two ends.
    ends = [float(x) for x, _ in places["far"]]
    assert sum(ends.count(end) for end in {min(ends), max(ends)}) == beyond
    assert f"{beyond} scores beyond 12 stand at the ends." in predictions.inner_text()
    worst = stored.isel(look=int(most_different(stored["p_value"].to_numpy())[0]))
    texts = predictions.locator(".scores svg text").all_text_contents()
    assert worst["worst_label"].item() in texts
    assert set(stored["look_name"].to_numpy()) <= {text.removesuffix(" (fitted)") for text in texts}
    histogram = predictions.locator(".shares")
    assert worst["picture_name"].item() in histogram.locator("svg text").all_text_contents()
    assert histogram.locator("li").all_inner_texts() == ["data", "simulated from the fit"]
    row = predictions.locator("tbody tr").first.locator("th, td").all_inner_texts()
    assert row[:3] == [worst["look_name"].item(), "below 1e-12", worst["worst_label"].item()]
    numbers = [worst[name].item() for name in ("observed_worst", "expected_worst")]
    assert [float(text) for text in row[3:5]] == pytest.approx(numbers, rel=0.01)
    assert row[5] == ("above 12" if worst["worst_z"] > 0 else "below -12")


def test_names_beside_scores_are_not_cut(opened):
    boxes = (
        opened("failed")
        .locator(".scores svg text")
        .evaluate_all(
            """all => all.map((each) => {
            const own = each.getBoundingClientRect();
            const whole = each.ownerSVGElement.getBoundingClientRect();
            return [own.left - whole.left, whole.right - own.right];
        })"""
        )
    )
    assert min(min(each) for each in boxes) >= 0


def test_verification_says_what_its_numbers_mean(opened, failed, city):
    section = part(opened("failed"), "Verification")
    heads = section.locator("thead th").all_inner_texts()
    cells = dict(zip(heads, section.locator("tbody th, tbody td").all_inner_texts(), strict=True))
    own = float(failed.data["normalizer"]["contrast_log_z"].mean())
    assert float(cells["log Z, contrast"]) == pytest.approx(own, rel=1e-3)
    assert float(cells["log Z, worked out"]) == pytest.approx(float(failed.log_z.mean()), rel=1e-3)
    share = 100 * float(failed.data["verification"]["strays"].item())
    assert cells["mass elsewhere"] == f"{share:.1f}{SPACE}%"
    assert cells["simulated"] == f"{failed.data['verification']['worth'].item():.0f}"
    items = [text.partition(":")[0] for text in section.locator("li").all_inner_texts()]
    assert items == ["log Z", "Mass elsewhere", "Near", "Simulated"]
    section = part(opened("city"), "Verification")
    assert section.locator("tbody tr").count() == city.data["posterior"].sizes["group"]
    assert "counted in cells" in section.locator("li").last.inner_text()


def test_a_fit_that_was_not_verified_says_so_in_both_sections(opened):
    page = opened("unverified")
    for title in ("Predictions", "Verification"):
        assert "This fit was not verified" in part(page, title).locator("p").first.inner_text()
    assert part(page, "Predictions").locator("svg, table").count() == 0
    assert "difference" in part(page, "Verification").locator("thead").inner_text()


def test_two_fits_of_one_page_are_shown_one_at_a_time_and_stay_as_they_are_left(opened, both):
    page = opened("both")
    first, second = page.get_by_role("group", name="Fits of this page").get_by_role("button").all()
    assert [first.inner_text(), second.inner_text()] == list(both)
    assert first.get_attribute("aria-pressed") == "true"
    assert page.locator("#network").count() == 1
    assert page.locator("#map").count() == 0
    page.locator("#threshold").press("End")
    left = page.locator("#threshold").get_attribute("aria-valuetext")
    second.press("Enter")
    assert (first.get_attribute("aria-pressed"), page.locator("#network").count()) == ("false", 0)
    assert page.locator("#map").count() == 1
    assert "ncbayes fit RUN/run.toml  # A city" in page.locator("#main").inner_text()
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    page.locator("#time").press("End")
    assert "2023-03" in page.locator("#time").get_attribute("aria-valuetext")
    assert page.evaluate(PALE) == []
    first.click()
    assert page.locator("#threshold").get_attribute("aria-valuetext") == left
    assert page.locator("footer p").count() == 1


@pytest.mark.parametrize("name", ["graph", "city", "line", "angles", "failed", "hundred", "both"])
def test_a_phone_scrolls_in_one_direction_only(opened, name):
    page = opened(name, PHONE)
    for target in ("#network", "#map", "#curve"):
        if page.locator(target).count():
            page.locator(target).focus()
            page.keyboard.press("ArrowRight")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    ends = page.locator("main section > *, .panel > *").evaluate_all(
        "all => all.map((each) => Math.ceil(each.getBoundingClientRect().right))"
    )
    assert max(ends) <= PHONE
    sizes = page.locator("button:visible, select:visible, input[type=search]:visible").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 24


CONTROLS = """() => {
    const kinds = "a[href], button, input, select, [tabindex='0'], summary";
    const all = [...document.querySelectorAll(kinds)];
    const seen = all.filter((each) => !each.disabled && each.getClientRects().length);
    const name = (each) => each.type === "radio" ? `radio ${each.name}` : String(all.indexOf(each));
    const active = () => document.activeElement;
    window.nameOf = () => active() === document.body ? null : name(active());
    return [...new Set(seen.map(name))];
}"""


@pytest.mark.parametrize("name", ["graph", "city", "line", "angles", "failed", "both"])
def test_tab_reaches_every_control_and_the_focus_is_seen(opened, name):
    page = opened(name)
    wanted = page.evaluate(CONTROLS)
    reached = []
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("window.nameOf()"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or reached[-1] is None
    assert set(wanted) <= set(reached)
    assert reached[: len(wanted)] == wanted


UNLABELLED = """() => {
    const named = (each) => each.getAttribute("aria-hidden") === "true"
        || each.getAttribute("aria-label") || (each.labels && each.labels.length)
        || (each.tagName === "BUTTON" && each.textContent.trim());
    const all = [...document.querySelectorAll("input, select, button, svg, canvas")];
    return all.filter((each) => !named(each)).map((each) => each.outerHTML.slice(0, 80));
}"""


@pytest.mark.parametrize("name", ["graph", "city", "line", "angles", "failed", "both"])
def test_screen_readers_find_landmarks_labels_and_headings(opened, name):
    page = opened(name)
    assert page.evaluate("document.documentElement.lang") == "en"
    for landmark in ("header", "nav", "main", "footer"):
        assert page.locator(landmark).count() == 1
    assert page.locator("h1").count() == 1
    levels = page.locator("h1, h2, h3").evaluate_all(
        "all => all.map((each) => each.tagName[1] - 0)"
    )
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.evaluate(UNLABELLED) == []
    page.evaluate("document.body.append(document.createElement('input'))")
    assert len(page.evaluate(UNLABELLED)) == 1
    ids = page.locator("[id]").evaluate_all("all => all.map((each) => each.id)")
    assert len(ids) == len(set(ids))
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert page.locator("[aria-live], [role=status]").count() >= 1


PALE = """() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
        .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
        .reduce((sum, each, k) => sum + each * [0.2126, 0.7152, 0.0722][k], 0);
    const behind = (each) => {
        for (; each; each = each.parentElement) {
            const colour = parts(getComputedStyle(each).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const hasText = (each) => [...each.childNodes].some((child) =>
        child.nodeType === 3 && child.textContent.trim());
    const texts = [...document.querySelectorAll("body *")]
        .filter((each) => each.getClientRects().length && hasText(each));
    return texts.map((each) => {
        const style = getComputedStyle(each);
        const ink = parts(each.namespaceURI.endsWith("svg") ? style.fill : style.color);
        const [a, b] = [light(ink), light(behind(each))].sort((one, other) => other - one);
        return [(a + 0.05) / (b + 0.05), each.textContent.slice(0, 40)];
    }).filter(([ratio]) => ratio < 4.5);
}"""


@pytest.mark.parametrize("name", ["graph", "city", "angles", "failed", "unverified", "both"])
def test_all_text_has_contrast(opened, name):
    page = opened(name)
    assert page.evaluate(PALE) == []
    page.evaluate("document.querySelector('#main p').style.color = '#999999'")
    assert len(page.evaluate(PALE)) == 1


@pytest.mark.parametrize("name", ["hundred", "sixty"])
def test_large_reports_open_within_two_seconds_and_answer(opened, name):
    page = opened(name)
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    assert timing["domContentLoadedEventEnd"] < 2000
    target = "#threshold" if name == "hundred" else "#time"
    took = page.locator(target).evaluate(
        """slider => {
            const start = performance.now();
            slider.value = Number(slider.value) ? 0 : 1;
            slider.dispatchEvent(new Event("input"));
            return performance.now() - start;
        }"""
    )
    assert took < 1000


def test_a_hundred_nodes_show_the_strongest_edges_and_are_found(opened, hundred):
    page = opened("hundred")
    page.get_by_label("median", exact=True).check()
    page.locator("#threshold").press("Home")
    assert "4950 of 4950 pairs are selected" in page.locator("#count").inner_text()
    assert "The 800 strongest are drawn." in page.locator("#count").inner_text()
    assert page.locator("#network .edges line").count() == 800
    assert page.get_by_role("button", name=re.compile("Show more rows")).is_visible()
    page.locator("#search").fill("x57")
    page.keyboard.press("Enter")
    table = ncb.graphs.edges(hundred, threshold=0.0)
    own = table[(table["node1"] == "x57") | (table["node2"] == "x57")].iloc[0]
    assert panel_of(page) == expected_panel(own, graph_in(hundred.data).kinds)


def test_without_scripts_the_page_says_so(opened):
    page = opened("angles", java_script_enabled=False)
    assert "JavaScript, which is switched off" in page.locator("main").inner_text()


def test_the_check_sees_a_page_that_loads_or_fails(opened, tmp_path):
    file = tmp_path / "bad.html"
    file.write_text("<img src='http://192.0.2.1/x.png'><script>undefined.x</script>")
    opened(file).wait_for_timeout(200)
    assert any("http://192.0.2.1/x.png" in trouble for trouble in opened.troubles)
    assert any("undefined" in trouble for trouble in opened.troubles)
    opened.troubles.clear()

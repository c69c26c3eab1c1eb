"""What the report's file holds: the right numbers, and nothing that could run or load."""

import base64
import json
import re
import tomllib
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import ncbayes as ncb
from ncbayes import webreport
from ncbayes.couplings import graph_in
from ncbayes.diagnosis import most_different
from ncbayes.webreport import chains, maps, networks, packing
from ncbayes.webreport import pages as writing
from ncbayes.webreport import verdicts as judging

ROOT = Path(__file__).parents[2]
MOST = 5_000_000


class Tags(HTMLParser):
    """All tags of a page, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def island(file):
    """The data of a page, found as a browser would: up to the next end of a script."""
    text = file.read_text(encoding="utf-8")
    start = text.index('id="data">') + len('id="data">')
    return json.loads(text[start : text.index("</script", start)])


def unpacked(pack, *shape):
    values = np.frombuffer(base64.b64decode(pack["data"]), dtype=f"<{pack['type']}")
    return values.reshape(*shape, -1) if shape else values


def intruders(text):
    """Elements that the template does not have."""
    known = set(re.findall(r"<([a-z0-9]+)", (files(webreport) / "report.html").read_text()))
    tags = [tag for tag, _ in Tags(text).tags]
    return (set(tags) - known, tags.count("script") - 2)


def test_head_verdict_and_ends_say_what_the_fit_was(pages, graph):
    found = island(pages("graph"))
    facts, known = dict(found["facts"]), graph.data.attrs
    assert facts["Model"] == "TorusGraph"
    assert facts["Data"] == "240 rows, 5 columns"
    assert facts["Groups"] == "2: task, rest"
    assert facts["Comparison points (noise)"] == f"{known['noise']}, noise ratio 5"
    assert facts["Draws"] == "2 chains x 40 draws, after 20 draws of tuning"
    assert facts["Seed"] == "1"
    assert facts["Date of the run"] == known["created_at"][:16].replace("T", " ") + " UTC"
    assert facts["Version"] == f"ncbayes {known['ncbayes_version']}"
    assert found["title"] == "Report of a fit of TorusGraph"
    assert found["verdict"]["line"] == graph.verdict().line
    noise = next(box for box in found["boxes"] if box["name"] == "Comparison points (noise)")
    lines = graph.noise_report().lines
    assert set(noise["more"]) < set(lines)
    told = [
        box["lines"] for box in found["boxes"] if box["name"] in (noise["name"], "Verification")
    ]
    said = " ".join([line for own in told for line in own] + noise["more"])
    for line in lines:
        assert line.removeprefix("The fit has failed: ").split(";")[0][1:].rstrip(".") in said
    assert found["repeat"]["command"] == "ncbayes fit RUN/run.toml"
    assert 'ncb.load("posterior.nc")' in found["repeat"]["code"]
    assert "Contrastive Bayesian Inference for Unnormalized Models" in found["repeat"]["cite"][0]
    assert ncb.__version__ in found["repeat"]["cite"][1]


@pytest.mark.parametrize("name", ["graph", "city", "angles", "failed", "unverified"])
def test_the_verdict_is_that_of_the_posterior_and_every_concern_is_told(name, pages, request):
    posterior = request.getfixturevalue(name)
    verdict = posterior.verdict()
    measured, total = chains.measured(posterior.data)
    assert judging.verdict(posterior.data, measured, total) == verdict
    found = island(pages(name))
    head = found["verdict"]
    assert (head["grade"], head["line"]) == (verdict.grade, verdict.line)
    assert head["next"].lower().removesuffix(".") == verdict.next_step.lower()
    boxes = {box["name"]: box for box in found["boxes"]}
    for side, title in judging.NAMES.items():
        concerns = verdict.of(side)
        assert (title in boxes) == bool(concerns)
        if concerns:
            assert boxes[title]["grade"] == ncb.concerns.worst(concerns)
            lines = boxes[title]["lines"]
            for concern, line in zip(concerns, lines, strict=False):
                assert line[1:].startswith(concern.line[1:])
                assert line.endswith(".")
            remedies = {each.remedy for each in concerns} - {""}
            assert all(" ".join(lines).count(each) == 1 for each in remedies)


def test_the_chains_box_says_how_to_fit_again(pages, graph):
    found = island(pages("graph"))
    box = found["boxes"][0]
    assert (box["name"], box["grade"]) == (
        "Convergence",
        graph.verdict().of("convergence")[0].grade,
    )
    more = graph.verdict().of("convergence")[0].facts["more_draws"]
    assert box["lines"][-1] == (
        f"To fit again: draws={40 + more}, on the command line --draws {40 + more}."
    )


def test_noise_is_called_comparison_points_where_it_is_first_met(pages, failed):
    found = island(pages("failed"))
    assert "neither data nor noise" in found["verdict"]["next"] + " ".join(
        found["boxes"][2]["lines"]
    )
    assert found["verdict"]["hint"].startswith("Noise means comparison points here: ")
    silent = ncb.concerns.Verdict((ncb.concerns.Concern("mixing", "convergence", "good", "fine"),))
    assert judging.headline(silent)["hint"] == ""


def test_a_failed_fit_says_so_above_its_results(pages, failed):
    found = island(pages("failed"))
    reason = failed.verdict().reason
    assert found["failed"] == f"The fit has failed, do not use what is shown here: {reason}."
    assert found["verdict"]["grade"] == "failed"
    assert island(pages("angles"))["failed"] == ""


def test_sentences_keep_names_and_get_one_full_stop():
    assert judging.sentence("log_z is off") == "log_z is off."
    assert judging.sentence("the chains agree.") == "The chains agree."
    assert judging.sentence("100 % of mass") == "100 % of mass."
    assert judging.sentence("") == "."


@pytest.mark.parametrize("name", ["graph", "city", "failed"])
def test_predictions_hold_the_scores_of_the_worst_group_and_all_looks(name, pages, request):
    stored = request.getfixturevalue(name).data["verification"].to_dataset()
    found = island(pages(name))["predictions"]
    worst = stored.isel(look=int(most_different(stored["p_value"].to_numpy())[0]))
    group = worst["look_group"].item()
    several = len(set(stored["look_group"].to_numpy())) > 1
    assert found["group"] == (group if several else None)
    own = np.flatnonzero(stored["look_group"].to_numpy() == group)
    assert [look["name"] for look in found["looks"]] == stored["look_name"].to_numpy()[own].tolist()
    for look, k in zip(found["looks"], own, strict=True):
        z = stored["z"][stored["compared_look"] == k]
        np.testing.assert_allclose(look["z"], z, rtol=1e-3)
        assert look["fitted"] == (not z.any())
    assert found["statistics"] == stored.sizes["compared"]
    assert found["limit"] == pytest.approx(norm.isf(0.005 / stored.sizes["compared"]), rel=1e-3)
    assert found["worst"]["label"] == worst["worst_label"].item()
    assert found["picture"]["name"] == worst["picture_name"].item()
    for key, variable, dim in (
        ("edges", "edges", "edge"),
        ("data", "data_share", "bar"),
        ("simulated", "simulated_share", "bar"),
    ):
        np.testing.assert_allclose(found["picture"][key], worst[variable].dropna(dim), rtol=1e-3)
    assert len(found["rows"]) == found["total"] == stored.sizes["look"]
    p_values = [row["p"] for row in found["rows"]]
    order = most_different(stored["p_value"].to_numpy())
    np.testing.assert_allclose(p_values, stored["p_value"][order], rtol=1e-5)
    first = found["rows"][0]
    assert first["observed"] == pytest.approx(worst["observed_worst"].item(), rel=1e-3)
    assert first["expected"] == pytest.approx(worst["expected_worst"].item(), rel=1e-3)


def test_only_the_smallest_p_values_have_room(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("ncbayes.webreport.predictions.MOST_ROWS", 3)
    found = island(webreport.write(graph, tmp_path / "a.html"))["predictions"]
    assert (len(found["rows"]), found["total"]) == (3, graph.data["verification"].sizes["look"])


def test_verification_holds_both_log_z_and_mass_elsewhere(pages, graph, city):
    found = island(pages("graph"))["verification"]
    assert [row["group"] for row in found["rows"]] == ["task", "rest"]
    assert (found["missing"], found["cells"], found["log_z"]) == ("", False, True)
    own = graph.data["normalizer"]["contrast_log_z"].mean(("chain", "draw")).to_numpy()
    known = graph.log_z.mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose([row["contrast"] for row in found["rows"]], own, rtol=1e-5)
    np.testing.assert_allclose([row["worked_out"] for row in found["rows"]], known, rtol=1e-5)
    gaps = [row["gap"] for row in found["rows"]]
    np.testing.assert_allclose(gaps, own - known, rtol=1e-3, atol=1e-6)
    for name in ("strays", "near", "near_from_rows", "worth", "rows"):
        values = graph.data["verification"][name].to_numpy()
        np.testing.assert_allclose([row[name] for row in found["rows"]], values, rtol=1e-3)
    assert island(pages("city"))["verification"]["cells"]


def test_a_fit_that_was_not_verified_says_so(pages, angles, tmp_path):
    found = island(pages("unverified"))
    why = "verify=False was asked for"
    words = f"This fit was not verified ({why}): fit again with verify=True."
    assert found["predictions"] == {"missing": words}
    assert found["verification"]["missing"] == words
    assert found["verification"]["log_z"]
    # A file of before there was a verification, or one that could not be made.
    kept = {name: child.to_dataset() for name, child in angles.data.children.items()}
    old = {name: each for name, each in kept.items() if name not in ("verification", "normalizer")}
    tree = xr.DataTree.from_dict(old)
    tree.attrs = {**angles.data.attrs, "not_verified": "no rows"}
    found = island(webreport.write(ncb.Posterior(tree), tmp_path / "a.html"))
    words = "This fit was not verified (no rows): fit again with verify=True."
    assert found["predictions"] == {"missing": words}
    assert (found["verification"]["missing"], found["verification"]["rows"]) == (words, [])
    del tree.attrs["not_verified"]
    found = island(webreport.write(ncb.Posterior(tree), tmp_path / "a.html"))
    assert found["predictions"]["missing"] == words.replace(" (no rows)", "")


def mixed(posterior, draws=400):
    """The posterior with independent draws in place of its own."""
    rng = np.random.default_rng(1)
    data = posterior.data["posterior"].to_dataset().isel(draw=[0] * draws)
    data = data.assign_coords(draw=np.arange(draws))
    data = data.map(lambda each: each.copy(data=rng.normal(size=each.shape)))
    stats = posterior.data["sample_stats"].to_dataset().isel(draw=[0] * draws)
    kept = {name: child.to_dataset() for name, child in posterior.data.children.items()}
    tree = xr.DataTree.from_dict({**kept, "posterior": data, "sample_stats": stats})
    tree.attrs = dict(posterior.data.attrs)
    return ncb.Posterior(tree)


def verdicts(posterior, folder):
    found = island(webreport.write(posterior, folder / "a.html"))
    return {box["name"]: box for box in found["boxes"]}


def test_good_chains_are_called_good_with_the_worst_numbers(angles, tmp_path):
    good = mixed(angles)
    box = verdicts(good, tmp_path)["Convergence"]
    assert box["grade"] == "good"
    worst = good.summary()
    assert f"R-hat is at most {worst['r_hat'].max():.3f}, and" in box["lines"][0]
    fewest = worst[["ess_bulk", "ess_tail"]].min(axis=1).min()
    assert f"at least {fewest:.0f} effective draws" in box["lines"][0]
    stuck = good.data["posterior"]["theta"].to_numpy()
    stuck[0] += 3
    box = verdicts(good, tmp_path)["Convergence"]
    assert box["grade"] == "poor"
    assert "the chains have not mixed" in box["lines"][0]
    # A posterior from a file can't be extended: what can be done is to fit again.
    more = good.verdict().of("convergence")[0].facts["more_draws"]
    assert more >= 800
    again = f"To fit again: draws={400 + more}, on the command line --draws {400 + more}."
    assert box["lines"][1] == again


@pytest.mark.parametrize("draws", [40, 400])
def test_one_chain_says_that_r_hat_is_not_known(angles, draws, tmp_path):
    both = mixed(angles, draws).data
    kept = {name: each.to_dataset() for name, each in both.children.items()}
    for name in ("posterior", "sample_stats"):
        kept[name] = kept[name].isel(chain=[0])
    tree = xr.DataTree.from_dict(kept)
    tree.attrs = both.attrs
    single = ncb.Posterior(tree)
    box = verdicts(single, tmp_path)["Convergence"]
    if draws < 100:
        assert box["grade"] == "poor"
        assert "fewer than 100 effective draws a chain" in box["lines"][0]
    else:
        assert box["grade"] == "fair"
        assert box["lines"] == ["R-hat is not known of one chain; fit with chains=4."]


def test_effective_draws_are_none_where_one_kind_is_not_known():
    draws = np.zeros((2, 400))
    for bulk, tail in ((500.0, np.nan), (np.nan, 500.0)):
        assert chains.Quantity("x", draws, bulk, tail, 1.0).effective == 0


def test_an_unknown_number_of_effective_draws_counts_as_none(angles):
    values = np.zeros((2, 400))
    unknown = [chains.Quantity("x", values, 500.0, np.nan, 1.0)]
    (concern,) = judging.verdict(angles.data, unknown, 1).of("convergence")
    assert concern.grade == "poor"
    assert "(worst 0 in all, x)" in concern.line


def test_other_warnings_and_fits_without_noise_have_their_words(angles, tmp_path):
    broken = mixed(angles)
    broken.data.attrs["complete"] = 0
    box = verdicts(broken, tmp_path)["Convergence"]
    assert [box["grade"], box["lines"][0][:24]] == ["poor", "The fit was interrupted:"]
    broken.data.attrs["concerns"] = "a column is strange"
    box = verdicts(broken, tmp_path)["Data"]
    assert [box["grade"], box["lines"]] == ["poor", ["A column is strange."]]
    kept = {name: child.to_dataset() for name, child in angles.data.children.items()}
    silent = xr.DataTree.from_dict({name: each for name, each in kept.items() if name != "noise"})
    silent.attrs = {key: each for key, each in angles.data.attrs.items() if "noise" not in key}
    box = verdicts(ncb.Posterior(silent), tmp_path)["Comparison points (noise)"]
    assert (box["grade"], box["lines"][0][:18]) == ("good", "There is no noise:")
    assert (
        dict(island(tmp_path / "a.html")["facts"])["Comparison points (noise)"]
        == "none (Hyvarinen score)"
    )
    assert island(tmp_path / "a.html")["noise"] is None


def test_names_of_users_never_become_tags(pages, graph, tmp_path, monkeypatch):
    nasty = '</title><script>alert(2)</script> & "x" @@SCRIPT@@ \ud800'
    file = webreport.write(graph, tmp_path / "a.html", title=nasty, repeat="</script><b>")
    text = file.read_text(encoding="utf-8")
    assert intruders(text) == (set(), 0)
    assert island(file)["title"] == nasty
    assert island(file)["view"]["network"]["nodes"] == list(graph_in(graph.data).nodes)
    assert "&lt;/title&gt;&lt;script&gt;alert(2)" in text
    monkeypatch.setattr(writing, "UNSAFE", {})
    bad = webreport.write(graph, tmp_path / "b.html").read_text(encoding="utf-8")
    assert intruders(bad) != (set(), 0)


@pytest.mark.parametrize("name", ["graph", "city", "line", "angles"])
def test_nothing_is_loaded_from_elsewhere(pages, name):
    text = pages(name).read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'`]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|\bimport\(", text)
    links = [attrs[key] for _, attrs in Tags(text).tags for key in ("src", "href") if key in attrs]
    assert links == ["data:,", "#main"]
    policy = next(attrs["content"] for _, attrs in Tags(text).tags if "http-equiv" in attrs)
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


PAGES = ["graph", "city", "line", "angles", "failed", "pooled", "hundred", "sixty", "four_hundred"]


@pytest.mark.parametrize("name", PAGES)
def test_pages_stay_below_five_megabytes(pages, name):
    assert pages(name).stat().st_size < MOST


def test_the_edges_are_those_of_graphs_edges_at_every_threshold(pages, graph):
    net = island(pages("graph"))["view"]["network"]
    order = graph_in(graph.data).edges
    assert unpacked(net["ends"], 10).tolist() == graph_in(graph.data).ends.tolist()
    assert net["thresholds"][net["start"]] == 0.1
    for group in net["groups"]:
        counts = unpacked(group["counts"], 10) / group["draws"]
        for step, threshold in enumerate(net["thresholds"]):
            table = ncb.graphs.edges(graph, threshold=threshold, group=group["label"])
            table = table.set_index(["node1", "node2"]).loc[order]
            np.testing.assert_array_equal(counts[:, step], table["probability"])
        for name, end in (("median", ""), ("low", "_low"), ("high", "_high")):
            values = table[[kind + end for kind in net["kinds"]]].to_numpy(dtype=np.float32)
            np.testing.assert_array_equal(unpacked(group[name], 10), values)
        np.testing.assert_array_equal(unpacked(group["norm"]), table["norm"].astype(np.float32))
        lags = ncb.graphs.phase_difference(graph, group=group["label"])
        angle = lags[["angle", "angle_low", "angle_high"]].to_numpy(dtype=np.float32)
        np.testing.assert_array_equal(unpacked(group["lag"], 10), angle)


def test_a_network_without_room_keeps_its_strongest_edges(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(networks, "MOST_BYTES", 700)
    net = island(webreport.write(graph, tmp_path / "a.html"))["view"]["network"]
    assert (net["possible"], net["edges"]) == (10, 3)
    tables = [ncb.graphs.edges(graph, group=label) for label in ("task", "rest")]
    best = max(tables, key=lambda table: table["strength"].max()).iloc[0]
    kept = [tuple(net["nodes"][j] for j in pair) for pair in unpacked(net["ends"], 3)]
    assert (best["node1"], best["node2"]) in kept


def test_the_layout_is_the_same_every_time_and_keeps_nodes_apart(hundred):
    first, again = (networks.network(hundred, ["all"], 0.9) for _ in range(2))
    assert (first["x"], first["y"]) == (again["x"], again["y"])
    places = np.stack([first["x"], first["y"]], axis=1)
    assert (places.min(), places.max()) == (0, 1)
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    # A hundred on a regular grid would be 0.1 apart.
    assert gaps.min() > 0.02
    block = np.arange(100) // 10
    same = (block[:, None] == block[None]) & np.isfinite(gaps)
    assert gaps[same].mean() < 0.5 * gaps[~same & np.isfinite(gaps)].mean()


def test_thresholds_are_round_and_hold_the_usual_one():
    assert networks.slider(3.0, 6) == [0, 0.1, 0.5, 1, 1.5, 2, 2.5, 3]
    assert networks.slider(0.0, 6)[0] == 0
    for highest in (1e-4, 0.07, 0.9, 12.3, 4e5):
        found = networks.slider(highest, 100)
        assert found == sorted(found)
        assert len(found) <= 103
        assert {0.0, 0.1} <= set(found)
        assert found[-1] >= highest


def test_the_maps_are_those_of_densities_density(pages, city):
    found = island(pages("city"))["view"]["map"]
    data = ncb.densities.density(city, size=maps.CELLS, draws=maps.MOST_DRAWS)
    assert found["draws"] == data.attrs["draws"]
    cells = unpacked(found["cells"])
    assert found["times"] == data["label"].to_numpy().tolist() == ["2023-01", "2023-02", "2023-03"]
    for name in ("mean", "sd", "low", "high"):
        values = data[name].to_numpy().reshape(3, -1)
        assert np.flatnonzero(np.isfinite(values[0])).tolist() == cells.tolist()
        expected = np.rint(values[:, cells] * 10.0 ** found["decimals"])
        np.testing.assert_array_equal(unpacked(found[name], 3), expected)
    # At least four digits of the highest.
    assert unpacked(found["high"]).max() > 6500
    nearest = unpacked(found["nearest"])
    assert nearest[cells].tolist() == list(range(len(cells)))


def test_the_changes_are_those_of_densities_change(pages, city):
    found = island(pages("city"))["view"]["map"]
    cells = unpacked(found["cells"])
    assert found["pairs"] == [[0, 1], [0, 2], [1, 2]]
    unit = 10.0 ** found["change_decimals"]
    for k, (start, end) in list(enumerate(found["pairs"]))[1:]:
        times = found["times"][start], found["times"][end]
        data = ncb.densities.change(city, *times, size=maps.CELLS, draws=maps.MOST_DRAWS)
        flat = {name: each.to_numpy().ravel()[cells] for name, each in data.items()}
        risen = np.rint(flat["probability"] * 80)
        rise = unpacked(found["rise"], 3)[k]
        np.testing.assert_array_equal(rise % found["open"], np.floor(100 * risen / 80 + 0.5))
        np.testing.assert_array_equal(rise >= found["open"], (risen > 4) & (risen < 76))
        for name in ("low", "high"):
            own = unpacked(found[f"change_{name}"], 3)[k]
            # Differences of densities are summed in another order there.
            np.testing.assert_allclose(own, flat[name] * unit, atol=0.5 + 1e-6)


def test_what_is_open_is_told_before_percents_are_rounded():
    risen = np.array([0, 24, 25, 26, 27, 250, 473, 474, 475, 476, 500])
    found = maps._percents(risen, 500)
    assert (found % maps.OPEN).tolist() == [0, 5, 5, 5, 5, 50, 95, 95, 95, 95, 100]
    assert (found >= maps.OPEN).tolist() == [(25 < each < 475) for each in risen]
    # Exact halves go up.
    assert maps._percents(np.array([1]), 200).tolist() == [1]


def test_many_more_times_have_a_coarser_grid(pages, four_hundred):
    assert island(pages("sixty"))["view"]["map"]["size"] == maps.CELLS == 60
    found = island(pages("four_hundred"))["view"]["map"]
    assert len(found["times"]) == 400
    assert 15 <= found["size"] < found["usual"] == maps.CELLS
    assert max(found["shape"]) == found["size"]
    assert unpacked(found["mean"], 400).shape == (400, len(unpacked(found["cells"])))
    assert {(0, k) for k in range(1, 400)} <= {tuple(pair) for pair in found["pairs"]}
    # It is no coarser than need be.
    field = maps.stored_field(four_hundred.data, "test")
    cells = [maps.sites(field, None, found["size"] + k, "test").inside.sum() for k in (0, 2)]
    assert maps.CELL_BYTES * 400 * cells[0] <= maps.MOST_BYTES < maps.CELL_BYTES * 400 * cells[1]


def test_curves_without_room_are_coarser_too(line, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MOST_BYTES", 1000)
    curve = island(webreport.write(line, tmp_path / "a.html"))["view"]["curve"]
    assert len(curve["ticks"][0]) == curve["size"] == 1000 // (2 * maps.CELL_BYTES)


def test_pooled_noise_counts_every_row_once(pages, pooled):
    found = island(pages("pooled"))["noise"]
    points = pooled.data["noise"].sizes["noise_row"]
    assert (found["counts"], found["sets"]) == ([60, points], 2)
    assert points >= 120
    assert sum(found["data"]) == pytest.approx(1, abs=1e-3)


def test_many_times_are_compared_with_a_few(pages):
    found = island(pages("sixty"))["view"]["map"]
    references = found["references"]
    assert 1 <= len(references) < 60
    assert references[0] == 0
    assert {(0, k) for k in range(1, 60)} <= {tuple(pair) for pair in found["pairs"]}
    assert found["change_low"] is None
    rows = unpacked(found["rise"], len(found["pairs"]))
    assert rows.shape[1] == len(unpacked(found["cells"]))


def test_curves_points_and_tables_hold_the_numbers(pages, line, angles):
    curve = island(pages("line"))["view"]["curve"]
    data = ncb.densities.density(line, size=maps.CURVE, draws=maps.MOST_DRAWS)
    expected = np.rint(data["mean"].to_numpy() * 10.0 ** curve["decimals"])
    np.testing.assert_array_equal(unpacked(curve["mean"], 2), expected)
    assert curve["points"]["counts"] == [80, 80]
    assert len(unpacked(curve["points"]["places"][0])) == 80
    table = island(pages("angles"))["view"]["parameters"]
    summary = angles.summary(level=0.9)
    rows = {row[0]: row[1:] for block in table["blocks"] for row in block["rows"]}
    assert set(rows) == set(summary.index)
    columns = ["mean", "median", "eti90_low", "eti90_high"]
    for name, values in rows.items():
        np.testing.assert_allclose(values, summary.loc[name, columns], rtol=1e-5)


def test_points_and_parameters_are_cut_where_there_are_too_many(
    line, angles, tmp_path, monkeypatch
):
    monkeypatch.setattr(maps, "MOST_POINTS", 50)
    points = island(webreport.write(line, tmp_path / "a.html"))["view"]["curve"]["points"]
    assert points["every"] == 4
    assert [len(unpacked(each)) for each in points["places"]] == [20, 20]
    monkeypatch.setattr("ncbayes.webreport.tables.MOST_ROWS", 2)
    table = island(webreport.write(angles, tmp_path / "a.html"))["view"]["parameters"]
    assert (table["total"], table["left"]) == (3, 1)


def test_densities_of_three_dimensions_and_energies_get_a_table(angles, tmp_path):
    draws = angles.data["posterior"].to_dataset()
    field = xr.Dataset({"dropped": 0}, {"axis": ["x", "y", "z"]})
    named = draws.rename(theta="weights").drop_vars("block")
    for groups in ({"field": field}, {"posterior": named.rename(statistic="part")}):
        kept = {name: child.to_dataset() for name, child in angles.data.children.items()}
        tree = xr.DataTree.from_dict({**kept, **groups})
        tree.attrs = angles.data.attrs
        view = island(webreport.write(ncb.Posterior(tree), tmp_path / "a.html"))["view"]
        assert [len(block["rows"]) for block in view["parameters"]["blocks"]] == [2, 1]


def test_only_the_worst_of_very_many_quantities_are_measured(graph, monkeypatch):
    everything, total = chains.measured(graph.data)
    assert len(everything) == total == len(graph.summary())
    monkeypatch.setattr(chains, "MOST_MEASURED", 20)
    some, again = chains.measured(graph.data)
    assert again == total
    assert 10 <= len(some) <= 20
    worst = max(everything, key=lambda each: np.nan_to_num(each.r_hat))
    assert worst.name in [each.name for each in some]
    assert np.median([each.r_hat for each in some]) > np.median([q.r_hat for q in everything])
    (concern,) = judging.verdict(graph.data, some, total).of("convergence")
    few = f"(measured were the {len(some)} of {total} quantities whose chains look worst)"
    assert concern.line.endswith(few)


def test_diagnostics_show_the_worst_and_ranks_add_up(pages, graph):
    found = island(pages("graph"))["diagnostics"]
    assert found["rows"][0]["r_hat"] == pytest.approx(graph.summary()["r_hat"].max(), rel=1e-5)
    assert len(found["rows"]) == chains.ROWS
    assert len(found["pictures"]) == chains.PICTURES
    for picture in found["pictures"]:
        assert np.array(picture["traces"]).shape == (2, 40)
        assert np.array(picture["ranks"]).sum(axis=1).tolist() == [40, 40]


def test_one_group_or_time_only(graph, city, angles, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "CELLS", 12)
    net = island(webreport.write(graph, tmp_path / "a.html", group="rest"))["view"]["network"]
    assert [group["label"] for group in net["groups"]] == ["rest"]
    found = island(webreport.write(city, tmp_path / "a.html", group="2023-02"))["view"]["map"]
    assert (found["times"], found["pairs"]) == (["2023-02"], [])
    table = island(webreport.write(angles, tmp_path / "a.html", group="all"))["view"]["parameters"]
    assert table["total"] == 3


def test_the_level_is_that_of_the_intervals(angles, tmp_path):
    table = island(webreport.write(angles, tmp_path / "a.html", level=0.5))["view"]["parameters"]
    assert table["level"] == 0.5
    name, *_, low, high = table["blocks"][0]["rows"][0]
    summary = angles.summary(level=0.5).loc[name]
    np.testing.assert_allclose([low, high], summary[["eti50_low", "eti50_high"]], rtol=1e-5)


@pytest.mark.parametrize("name", ["graph", "city", "angles"])
def test_a_loaded_posterior_gives_the_same_page(name, request, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "CELLS", 12)
    fresh = request.getfixturevalue(name)
    fresh.save(tmp_path / "posterior.nc")
    one = webreport.write(fresh, tmp_path / "one.html")
    other = webreport.write(ncb.load(tmp_path / "posterior.nc"), tmp_path / "other.html")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("a.txt", {}, r"path must end in \.html, got 'a\.txt'"),
        ("none/a.html", {}, "can't write to 'none/a.html': it must be a file in a folder"),
        (7, {}, "path must be the name of a file, got 7"),
        (b"a.html", {}, "path must be the name of a file, got b'a.html'"),
        ("a\0.html", {}, "path must be a name without zero bytes"),
        ("a.html", {"title": 7}, "title must be text, got 7"),
        ("a.html", {"repeat": b"x"}, "repeat must be text, got b'x'"),
        (
            "a.html",
            {"repeat": {"x": "y"}},
            r"names of the fits \(one fit, which has no name\), got",
        ),
        ("a.html", {"level": 90}, "level must be between 0 and 1, such as 0.9, got 90"),
        ("a.html", {"group": "x"}, r"group must be one of the posterior's groups \['all'\]"),
    ],
)
def test_what_cannot_be_written_is_refused(angles, path, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ncb.InputError, match=message):
        webreport.write(angles, path, **options)
    assert list(tmp_path.iterdir()) == []


def test_other_objects_are_refused(angles, tmp_path):
    with pytest.raises(
        ncb.InputError, match=r"webreport\.write needs the posterior that ncbayes\.fit"
    ):
        webreport.write(angles.data, tmp_path / "a.html")


def test_several_fits_share_a_page_by_name(angles, graph, tmp_path):
    fits = {"Angles": angles, "<Regions>": graph}
    file = webreport.write(fits, tmp_path / "a.html", repeat={"Angles": "make angles"})
    found = island(file)
    assert found["title"] == "Report of Angles, <Regions>"
    assert [fit["title"] for fit in found["fits"]] == list(fits)
    assert [fit["repeat"]["command"] for fit in found["fits"]] == ["make angles", None]
    assert intruders(file.read_text(encoding="utf-8")) == (set(), 0)
    for fit, alone in zip(found["fits"], fits.values(), strict=True):
        single = island(webreport.write(alone, tmp_path / "one.html", title=fit["title"]))
        fit["repeat"]["command"] = None
        assert fit == single
    titled = webreport.write(fits, tmp_path / "a.html", title="Two")
    assert island(titled)["title"] == "Two"


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "needs at least one posterior, got an empty mapping"),
        (("",), {}, "names of fits must be texts that are not empty, got ''"),
        ((3,), {}, "names of fits must be texts that are not empty, got 3"),
        (("a", "b"), {"repeat": "x"}, r"by the names of the fits \('a', 'b'\), got 'x'"),
        (("a",), {"repeat": {"b": "x"}}, r"by the names of the fits \('a'\), got {'b': 'x'}"),
    ],
)
def test_names_of_several_fits_are_checked(angles, names, options, message, tmp_path):
    with pytest.raises(ncb.InputError, match=message):
        webreport.write(dict.fromkeys(names, angles), tmp_path / "a.html", **options)
    with pytest.raises(ncb.InputError, match="or several of them by name, got 5"):
        webreport.write({"a": angles, "b": 5}, tmp_path / "a.html")


def test_a_failed_write_leaves_the_old_page(angles, tmp_path, monkeypatch):
    file = webreport.write(angles, tmp_path / "a.html")
    assert file == tmp_path / "a.html"
    before = file.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ncb.InputError, match=r"can't write to .*a\.html': No space left on device"):
        webreport.write(angles, file, title="another")
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]


def test_the_wheel_holds_the_assets():
    """Hatch packs all of a package but what is excluded or ignored."""
    used = {*writing.SCRIPTS, "report.html", "report.css"}
    folder = ROOT / "src" / "ncbayes" / "webreport"
    assert {
        each.name for each in folder.iterdir() if each.suffix in (".js", ".html", ".css")
    } == used
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert "src/ncbayes" in wheel["targets"]["wheel"]["packages"]
    assert "exclude" not in json.dumps(wheel)
    ignored = (ROOT / ".gitignore").read_text().split()
    assert not [line for line in ignored if re.search(r"html|css|js|webreport", line)]


def test_numbers_are_packed_as_the_script_reads_them():
    assert unpacked(packing.packed([[1, 2], [3, 258]], "u2")).tolist() == [1, 2, 3, 258]
    assert packing.packed([1], "u2")["data"] == "AQA="
    assert packing.plain(float("nan")) is None
    assert packing.plain(1.23456789) == 1.23457
    assert packing.decimals_of(0.0234) == 6
    assert packing.decimals_of(0.0) == 0
    assert packing.decimals_of(1e9) == -5

"""What notebooks show: real content, escaped, and not too much of it."""

import re
import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.notebooks import MOST_ROWS

MODELS = [
    ncb.models.VonMises(),
    ncb.models.Gaussian(2),
    ncb.models.Exponential(),
    ncb.models.Gamma(),
    ncb.models.TorusGraph(3),
    ncb.models.Ising(3),
    ncb.models.TruncatedGaussian(3),
    ncb.models.ConwayMaxwell(3, most=9),
    ncb.models.RadialBasis(np.eye(2), 1.0, ncb.spaces.Box([0, 0], [1, 1])),
    ncb.models.ERGM(4, [ncb.models.terms.edges()]),
    ncb.models.Features(lambda x: x, ncb.spaces.Box([0], [1])),
]


def cells(html):
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)


def test_every_model_shows_its_space_and_its_statistics():
    shown = {type(model).__name__ for model in MODELS} | {"VaryingERGM"}
    classes = {name for name in ncb.models.__all__ if hasattr(getattr(ncb.models, name), "space")}
    assert classes <= shown
    for model in MODELS:
        found = cells(model._repr_html_())
        assert found[0] == "space"
        for block, names in model.groups.items():
            at = found.index(f"{block} ({len(names)})")
            assert found[at + 1].startswith(names[0].replace(">", "&gt;"))


def test_long_blocks_are_cut():
    html = ncb.models.TorusGraph(30)._repr_html_()
    assert "cos(x1 - x2), sin(x1 - x2)" in html
    assert len(html) < 1500


def test_names_are_escaped():
    html = ncb.models.TorusGraph(["<script>", "b"])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.fixture(scope="module")
def posterior():
    data = ncb.datasets.torus_chain(30, nodes=3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            data.model, data.data, noise="matched", draws=20, tune=10, chains=2, cores=1, seed=7,
            progress=False,
        )  # fmt: skip


def test_a_posterior_shows_its_settings_and_first_quantities(posterior, tmp_path):
    html = posterior._repr_html_()
    assert "Posterior of TorusGraph(3): 2 chains x 20 draws" in html
    found = cells(html)
    assert found[found.index("seed") + 1] == "7"
    at = found.index("cos(x1)")
    draws = posterior.theta.sel(statistic="cos(x1)").to_numpy().ravel()
    low, high = np.quantile(draws, [0.05, 0.95])
    wanted = [draws.mean(), draws.std(ddof=1), low, high]
    assert found[at + 1 : at + 5] == [f"{value:.3g}" for value in wanted]
    assert html.count("<tr>") <= MOST_ROWS + 7
    assert ".summary()" in html
    posterior.save(tmp_path / "p.nc")
    assert ncb.load(tmp_path / "p.nc")._repr_html_() == html

import matplotlib.pyplot as plt
import numpy as np
import pytest
from typer.testing import CliRunner

import ncbayes as ncb
from ncbayes import cli, plots

runner = CliRunner()


@pytest.fixture(autouse=True)
def _agg():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_demo_prints_a_summary_and_writes_what_it_says(tmp_path):
    result = runner.invoke(cli.app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for word in ("truth", "cos", "sin", "log_z", "eti90_low", "r_hat"):
        assert word in result.output
    assert max(map(len, result.output.splitlines()[:-1])) <= 80
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "density.png",
        "trace.png",
        "posterior.nc",
    }
    posterior = ncb.load(tmp_path / "out" / "posterior.nc")
    assert posterior.theta.sizes["chain"] == 4


def test_version_and_help():
    assert runner.invoke(cli.app, ["--version"]).output == f"ncbayes {ncb.__version__}\n"
    assert "demo" in runner.invoke(cli.app, ["--help"]).output


@pytest.fixture(scope="module")
def grouped():
    model = ncb.models.Gamma()
    rng = np.random.default_rng(0)
    data = {name: model.sample(np.array([3.0, 1.0]), 100, rng) for name in ("a", "b")}
    return model, ncb.fit(model, data, draws=400, tune=200, seed=1, progress=False)


def test_density_plot_has_a_panel_a_group(grouped):
    model, posterior = grouped
    figure = plots.density(posterior, model, truth=np.array([3.0, 1.0]))
    assert [axis.get_title() for axis in figure.axes] == ["a", "b"]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert {"data (n = 100)", "noise (m = 100)", "90 % band", "posterior median", "truth"} <= set(
        labels
    )
    median = next(line for line in figure.axes[0].lines if line.get_label() == "posterior median")
    x, y = median.get_data()
    assert np.trapezoid(y, x) == pytest.approx(1, abs=0.02)


def test_trace_plot_has_a_row_a_quantity(grouped):
    figure = plots.trace(grouped[1], most=3)
    assert [axis.get_ylabel() for axis in figure.axes[::2]] == ["log(x)[a]", "-x[a]", "log(x)[b]"]


def test_density_plot_refuses_more_dimensions():
    model = ncb.models.Gaussian(2)
    with pytest.raises(ncb.InputError, match=r"one dimension, Gaussian\(dimension=2\) has 2"):
        plots.density(None, model)

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import plots


@pytest.fixture(autouse=True)
def _agg():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def grouped():
    model = ncb.models.Gamma()
    rng = np.random.default_rng(0)
    data = {name: model.sample(np.array([3.0, 1.0]), 100, rng) for name in ("a", "b")}
    return model, ncb.fit(model, data, noise="matched", draws=400, tune=200, seed=1, progress=False)


def test_density_plot_has_a_panel_a_group(grouped):
    model, posterior = grouped
    figure = plots.density(posterior, model, truth=np.array([3.0, 1.0]))
    assert [axis.get_title() for axis in figure.axes] == ["a", "b"]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert {"data (n = 100)", "noise (m = 500)", "90 % band", "posterior median", "truth"} <= set(
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


def test_the_truth_may_be_a_list(grouped):
    model, posterior = grouped
    one, other = (
        next(
            line
            for line in plots.density(posterior, model, truth=truth).axes[1].lines
            if line.get_label() == "truth"
        ).get_ydata()
        for truth in ([3, 1], np.array([3.0, 1.0]))
    )
    assert np.array_equal(one, other)


TRUTH = r"^truth must be 2 finite numbers, one for each of the statistics \['log\(x\)', '-x'\], got"
LEVEL = "^level must be between 0 and 1, such as 0.9, got"
FITTED = r"^model must be the one that was fitted, with the statistics \['log\(x\)', '-x'\], got"
MODEL = r"^plots.density\(posterior, model\) needs the model that was fitted, such as .*\(\), got"
POSTERIOR = "needs the posterior that ncbayes.fit or ncbayes.load returns, got"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"level": level}, f"{LEVEL} {re.escape(repr(level))}$")
            for level in (1.5, 1, 0, -0.1, 90, True, "0.9", None, float("nan"), [0.5, 0.9])
        ),
        ({"truth": [1.0]}, rf"{TRUTH} \[1.0\]$"),
        ({"truth": [1, 2, 3]}, rf"{TRUTH} \[1, 2, 3\]$"),
        ({"truth": 3.0}, rf"{TRUTH} 3.0$"),
        ({"truth": [[1, 2], [3, 4]]}, rf"{TRUTH} \[\[1, 2\], \[3, 4\]\]$"),
        ({"truth": [[1], [3, 4]]}, rf"{TRUTH} \[\[1\], \[3, 4\]\]$"),
        ({"truth": ["a", "b"]}, rf"{TRUTH} \['a', 'b'\]$"),
        ({"truth": [1.0, float("inf")]}, rf"{TRUTH} \[1.0, inf\]$"),
        ({"model": ncb.models.VonMises()}, rf"{FITTED} VonMises\(\) with \['cos', 'sin'\]$"),
        ({"model": ncb.models.Exponential()}, rf"{FITTED} Exponential\(\) with \['-x'\]$"),
        ({"model": ncb.models.Gamma}, f"{MODEL} the class Gamma$"),
        ({"model": "gamma"}, f"{MODEL} 'gamma'$"),
        ({"posterior": None}, f"^plots.density {POSTERIOR} None$"),
    ],
)
def test_density_plots_say_what_they_cannot_show(grouped, options, message):
    model, posterior = grouped
    with pytest.raises(ncb.InputError, match=message):
        plots.density(**{"posterior": posterior, "model": model, **options})
    assert not plt.get_fignums()


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "3", None])
def test_trace_plots_show_at_least_one_quantity(grouped, most):
    with pytest.raises(
        ncb.InputError, match=rf"^most must be a whole number, 1 or more, got {most!r}$"
    ):
        plots.trace(grouped[1], most=most)


def test_trace_plots_need_a_posterior(grouped):
    with pytest.raises(ncb.InputError, match=rf"^plots.trace {POSTERIOR} Gamma\(\)$"):
        plots.trace(grouped[0])


def test_the_shortest_fit_can_be_shown():
    model, data = ncb.models.Gaussian(1), [1.0, 2.0, 4.0]
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(
            model, data, noise="matched", draws=1, tune=0, chains=1, seed=1, progress=False
        )
    assert len(plots.trace(posterior).axes) == 6
    assert len(plots.density(posterior, model).axes) == 1

"""The studies and benchmarks of sparse torus graphs, in small."""

import importlib.machinery
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import graph_readings
import ncbayes as ncb
import slab_forms
import torus_readings
from ncbayes_bench import nuts_horseshoe, torus_size
from ncbayes_bench.pooled import pooled
from ncbayes_paper import published, torus_tables

ROOT = Path(__file__).parents[1]
FOLDERS = [str(ROOT / "studies"), str(ROOT / "benchmarks")]


def chain(seed, rows=60, nodes=3):
    return ncb.datasets.torus_chain(rows, nodes=nodes, seed=seed)


@pytest.mark.parametrize("path", [p for f in FOLDERS for p in Path(f).glob("*.py")], ids=str)
def test_no_script_hides_an_installed_module(path):
    """A script's folder comes first on the path of all that it imports, and numba asks for one."""
    others = [each for each in sys.path if each not in FOLDERS]
    assert importlib.machinery.PathFinder.find_spec(path.stem, others) is None
    assert path.stem != "coverage"


def test_scores_by_hand():
    true = np.array([True, True, True, False, False])
    selected = np.array([True, False, False, True, False])
    assert torus_tables.scores(selected, true) == [1 / 3, 1 / 2, 2 / 5]
    assert torus_tables.scores(true, true) == [1, 1, 1]
    # Nothing selected, nothing false.
    assert torus_tables.scores(np.zeros(5, bool), true) == [0, 1, 2 / 5]
    assert torus_tables.scores(selected, np.zeros(5, bool)) == [1, 0, 3 / 5]


def test_coverage_by_hand():
    draws = np.linspace(0, 1, 101)[:, None] * np.ones(4)
    # The intervals are [0.05, 0.95], ends included.
    assert torus_tables.coverage(draws, np.array([0.04, 0.06, 0.94, 0.96])) == 0.5
    assert torus_tables.coverage(draws, np.full(4, 0.5)) == 1


def posterior_of(draws, model, data):
    """A posterior with these draws of theta."""
    posterior = ncb.fit(
        model,
        data,
        noise="matched",
        draws=len(draws),
        tune=0,
        chains=1,
        cores=1,
        seed=1,
        progress=False,
    )
    posterior.data["posterior"]["theta"].values[:] = draws[None, :, None]
    return posterior


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_both_rules_see_the_edges_that_they_should():
    """x1 - x2 far from zero; x1 - x3 in the median only; x2 - x3 small but for certain."""
    simulated = chain(1)
    draws = np.tile(np.linspace(-0.01, 0.01, 40)[:, None], (1, 18))
    for column, (low, high) in {6: (1.0, 2.0), 11: (-0.5, 1.0), 17: (-0.09, -0.08)}.items():
        draws[:, column] = np.linspace(low, high, 40)
    posterior = posterior_of(draws, simulated.model, simulated.data)
    found = torus_tables.rated(posterior, simulated)
    # True edges are x1 - x2 and x2 - x3.
    names = torus_tables.NAMES
    assert [found[f"median_{name}"] for name in names] == [1 / 2, 1 / 2, 1 / 3]
    assert [found[f"interval_{name}"] for name in names] == [1, 1, 1]
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    covered = (low <= simulated.theta) & (simulated.theta <= high)
    assert found["coverage"] == pytest.approx(100 * covered.mean())


@pytest.mark.parametrize("method", ["nu=1 updated", "nu=5 annealed", "auto", "w=0.2"])
def test_a_replication_of_every_kind_runs(method, seed):
    simulated = chain(seed)
    posterior = torus_tables.fitted(simulated, method, seed, tune=10, draws=20)
    found = torus_tables.rated(posterior, simulated)
    shares = [v for k, v in found.items() if k.startswith(torus_tables.RULES)]
    assert len(shares) == 6
    assert all(0 <= value <= 1 for value in [*shares, found["coverage"] / 100])
    assert found["ess"] > 0
    assert found["r_hat"] > 0.9


def test_every_reading_of_the_paper_is_fitted_and_shown(monkeypatch):
    monkeypatch.setattr(torus_tables, "simulated_data", lambda scenario, number: chain(number))
    found = {
        name: [torus_readings.measured(name, seed, 5, 20) for seed in (1, 2)]
        for name in torus_readings.NAMES[:2]
    }
    lines = torus_readings.table(found).splitlines()
    assert lines[2] == "| the paper | 0.996 | 0.999 | 97.9 | 0.507 |"
    assert [line.count(" ± ") for line in lines[4:]] == [4, 4]
    options = torus_readings.readings(chain(1).model.space)
    assert set(options) == set(torus_readings.NAMES)
    assert options["stated prior, new noise, tau fixed"]["prior"].tau > 0


def test_mixing_is_that_of_the_worst_parameter(seed):
    rng = np.random.default_rng(seed)
    good = rng.standard_normal((1, 400, 2))
    # One parameter moves half way: its halves disagree.
    bad = good + np.array([0.0, 3.0]) * (np.arange(400) >= 200)[None, :, None]
    assert torus_tables.mixing(good)["r_hat"] < 1.05
    assert torus_tables.mixing(good)["ess"] > 100
    assert torus_tables.mixing(bad)["r_hat"] > 1.3
    assert torus_tables.mixing(bad)["ess"] < 20


def test_pooled_is_the_contrast_of_the_fit(seed):
    """Log odds at the average coef, which the posterior holds too."""
    simulated = chain(seed)
    posterior = torus_size.fitted(simulated, tune=5, draws=10)
    contrast = pooled(posterior, simulated.model)
    theta = posterior.theta.to_numpy()[0, :, 0].mean(axis=0)
    own = float(posterior.data["normalizer"]["contrast_log_z"].mean())
    log_odds = contrast.statistics @ theta - own + contrast.offset
    noise = posterior.data["noise"].to_dataset()
    at_data, at_noise = noise["log_odds_at_data"].to_numpy()[0], noise["log_odds"].to_numpy()
    np.testing.assert_allclose(log_odds, np.concatenate([at_data, at_noise]), atol=1e-9)
    assert contrast.is_data.sum() == len(simulated.data)


def test_z_scores_tell_equal_means_from_others(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, 500, 50)), rng.normal(0, 3, size=(4, 500, 50))
    limit = slab_forms.allowed(50)
    z = nuts_horseshoe.z_scores(one, other)
    assert np.abs(z).max() < limit
    # 50 standard normals.
    assert 0.5 < z.std() < 1.7
    assert np.abs(nuts_horseshoe.z_scores(one + 1, other)).min() > limit
    assert slab_forms.row("a", "a", z)[1]
    assert not slab_forms.row("a", "b", z)[1]
    assert stats.norm.sf(limit) * 100 == pytest.approx(1e-6)


@pytest.mark.slow
def test_the_dense_sweep_samples_the_prior_of_the_papers_algorithm(seed):
    simulated = chain(seed)
    fits = {
        form: torus_size.fitted(
            simulated, prior=ncb.priors.Horseshoe(slab_form=form), tune=500, draws=4000
        )
        for form in slab_forms.FORMS
    }
    contrast = pooled(fits["likelihood"], simulated.model)
    design, rng = torus_size.bordered(contrast), np.random.default_rng(seed)
    state, draws = torus_size.first_state(fits["likelihood"]), []
    for _ in range(12_000):
        state = torus_size.dense_sweep(contrast, design, state, rng)
        draws.append([*state.gamma[:-1], -state.gamma[-1], np.log(state.tau) / 2])
    dense = np.array(draws)[None]
    z = {
        form: np.abs(nuts_horseshoe.z_scores(nuts_horseshoe.our_draws(each), dense)).max()
        for form, each in fits.items()
    }
    limit = slab_forms.allowed(dense.shape[-1])
    assert z["likelihood"] < limit, z
    # The broken twin: the other form of the slab.
    assert z["conditional"] > limit, z


def test_the_tables_of_costs_and_their_picture(tmp_path):
    by_nodes = [torus_size.cost(nodes, 30, draws=5) for nodes in (3, 4)]
    by_points = [torus_size.cost(3, rows, draws=5) for rows in (30, 60)]
    text = torus_size.cost_table(by_nodes, by_points)
    assert text.count("\n| 3 | 180 | 19 |") == 2
    assert "\nslope in points: ours " in text
    torus_size.picture(by_nodes, by_points, tmp_path / "cost.png")
    assert (tmp_path / "cost.png").stat().st_size > 1000
    table = torus_size.sweep_table(nodes=3, rows=30, draws=5, dense=2)
    assert "\n| likelihood | 180 | 19 | " in table


def test_slopes_are_those_of_powers():
    x = [1.0, 2.0, 4.0, 8.0]
    assert torus_size.slope(x, [3 * each**2 for each in x]) == pytest.approx(2)
    assert torus_size.slope(x, [1.0, 2.0, np.nan, np.nan]) == pytest.approx(1)
    assert np.isnan(torus_size.slope(x, [np.nan] * 4))


def test_peak_memory_sees_what_is_gone_again():
    import time

    def greedy():
        block = np.ones(25_000_000)
        time.sleep(0.2)
        return block.sum()

    seconds, before, most = torus_size.with_peak(greedy, every=0.02)
    assert seconds > 0.2
    assert most - before > 150e6
    assert torus_size.with_peak(lambda: None, every=0.02)[2] - before < 150e6


def test_a_whole_fit_tells_minutes_and_memory():
    text = torus_size.whole_fit(3, 30, chains=2, tune=5, draws=10, cores=1)
    assert text.startswith("3 angles, n = 30, nu = 5, 2 chains of 5 + 10 sweeps, cores=1: 0.")


def numpyro():
    return pytest.importorskip("numpyro", reason="NumPyro, the extra bench, is not installed")


@pytest.mark.parametrize("form", slab_forms.FORMS)
def test_nuts_gets_the_density_that_the_form_names(form, seed):
    """Its logarithm by hand, at values near a prior draw; the Jacobian of theta is in ``unit``."""
    numpyro().enable_x64()
    from numpyro.infer.util import log_density

    simulated, rng, slab = chain(seed), np.random.default_rng(seed), 0.7
    posterior = torus_size.fitted(simulated, tune=2, draws=2)
    contrast = pooled(posterior, simulated.model)
    values = {
        "tau": np.exp(rng.normal()),
        "local": np.exp(rng.normal(size=9)),
        "unit": rng.normal(size=18),
        "c": rng.normal(),
    }
    found, other = (
        float(log_density(nuts_horseshoe.density, (contrast, each, slab), {}, values)[0])
        for each in (form, *(each for each in slab_forms.FORMS if each != form))
    )
    spread = values["tau"] * values["local"][contrast.runs]
    fictitious = 0.0
    if form == "conditional":
        spread = (slab**-2 + spread**-2) ** -0.5
    else:
        fictitious = np.sum((spread * values["unit"]) ** 2) / (2 * slab**2)
    log_odds = contrast.statistics @ (spread * values["unit"]) + values["c"] + contrast.offset
    signs = np.where(contrast.is_data, 1, -1)
    expected = (
        -np.sum(np.logaddexp(0, -signs * log_odds))
        - fictitious
        + stats.norm.logpdf(values["unit"]).sum()
        + stats.norm.logpdf(values["c"], scale=1000**0.5)
        + stats.halfcauchy.logpdf(values["local"]).sum()
        + stats.halfcauchy.logpdf(values["tau"])
    )
    assert found == pytest.approx(expected, abs=1e-8)
    assert other != pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
def test_nuts_agrees_with_our_sampler_of_the_same_form_only(seed):
    numpyro()
    simulated = chain(seed)
    settings = {"draws": 4000, "tune": 500, "chains": 1, "cores": 1, "seed": seed}
    fits = {form: slab_forms.fitted(simulated, form, 1.0, **settings) for form in slab_forms.FORMS}
    contrast = pooled(fits["likelihood"], simulated.model)
    theirs, _ = slab_forms.nuts_draws(contrast, "likelihood", 1000, 3000, 1, seed)
    found = {
        form: slab_forms.row(
            form, "likelihood", nuts_horseshoe.z_scores(nuts_horseshoe.our_draws(each), theirs)
        )
        for form, each in fits.items()
    }
    assert all(right for _, right in found.values()), found


@pytest.mark.slow
def test_the_benchmark_against_nuts_compares_one_posterior():
    numpyro()
    import time

    from ncbayes_bench import nuts

    simulated = chain(1, nodes=2)
    posterior, *ours = nuts.ours(simulated, 1.0, 20, 200, time.perf_counter)
    contrast = pooled(posterior, simulated.model)
    *theirs, divergences = nuts.theirs(contrast, 20, 30, time.perf_counter)
    assert 0 <= divergences <= 60
    assert ours[1].seconds < ours[0].seconds
    assert theirs[1].seconds < theirs[0].seconds
    assert theirs[0].draws.shape == theirs[1].draws.shape == (1, 30, 10)
    # The draws go on where they stopped, and do not start again.
    assert not np.array_equal(theirs[0].draws, theirs[1].draws)
    text = nuts.table(list(zip(ours, theirs, strict=True)))
    assert [line.split("|")[1].strip() for line in text.splitlines()[2:]] == [
        "theta, worst",
        "theta, median",
        "log Z",
        "tau",
        "seconds",
    ]


def test_the_papers_random_graph_has_41_edges_by_its_own_numbers(monkeypatch):
    """All rows of its interval table without false edges agree, within their rounding."""
    for _, recall, precision, accuracy in published.INTERVAL["random"].values():
        if precision >= 0.998 and recall < 0.99:
            bound = graph_readings.PAIRS * 0.0005 / (1 - recall) + 0.5
            assert graph_readings.edges_of(recall, accuracy) == pytest.approx(41, abs=bound)
    assert graph_readings.edges_of(0.5, 1 - 5 / 435) == pytest.approx(10)
    seeds = list(itertools.islice(graph_readings.graphs(41), 2))
    assert seeds == [2, 10]
    small = ncb.datasets.torus_chain(30, nodes=3, seed=1)
    monkeypatch.setattr(ncb.datasets, "torus_random", lambda **options: small)
    rows = [graph_readings.measured(method, 2, 5, 20) for method in ("nu=1", "tau=0.02")]
    assert rows[0] != rows[1]
    lines = graph_readings.table({"nu=1": rows, "nu=1 tau": rows}).splitlines()
    assert [line.count(" ± ") for line in lines[2:]] == [7, 0, 7]
    assert lines[3] == "| the paper | 0.973 | 1.000 | 0.997 | 98.9 | 0.776 | 1.000 | 0.979 |"

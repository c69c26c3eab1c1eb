"""The paper's samplers in dense NumPy, and the page that compares ncbayes with the alternatives."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes_bench import compare, cost, density, density_mixing, page, paper_gibbs, torus
from ncbayes_bench.nuts_horseshoe import effective, our_draws, z_scores
from ncbayes_bench.pooled import pooled
from ncbayes_bench.torus_size import bordered, fitted
from slab_forms import allowed


def torus_draws(contrast, draws, seed, offset=None):
    """(1, draw, parameter): theta, log Z and log tau; another offset makes a broken sampler."""
    offset = contrast.offset if offset is None else offset
    design, rng = bordered(contrast), np.random.default_rng(seed)
    state, found = paper_gibbs.torus_start(contrast.runs), []
    for _ in range(draws + 200):
        state = paper_gibbs.torus_sweep(design, offset, contrast.is_data, contrast.runs, state, rng)
        found.append([*state.gamma[:-1], -state.gamma[-1], np.log(state.tau) / 2])
    return np.array(found)[None, 200:]


def test_the_papers_torus_sampler_agrees_with_ours(seed):
    simulated = ncb.datasets.torus_chain(60, nodes=3, seed=seed)
    prior = ncb.priors.Horseshoe(slab=1, slab_form="likelihood")
    posterior = fitted(simulated, prior=prior, tune=500, draws=4000)
    contrast, ours = pooled(posterior, simulated.model), our_draws(posterior)
    limit = allowed(ours.shape[-1])
    right = torus_draws(contrast, 10_000, seed)
    assert effective(right).min() > 100
    assert np.abs(z_scores(ours, right)).max() < limit
    # The broken twin drops the offset.
    broken = torus_draws(contrast, 2000, seed, 0 * contrast.offset)
    assert np.abs(z_scores(ours, broken)).max() > limit


def density_draws(parts, shape, draws, seed, rate=1.0):
    """(1, draw, parameter): theta, beta and log lambda."""
    state, rng, found = paper_gibbs.density_start(*shape), np.random.default_rng(seed), []
    for _ in range(draws + 200):
        state = paper_gibbs.density_sweep(*parts, state, rng, rate=rate)
        found.append([*state.theta.ravel(), *state.beta, np.log(state.variance)])
    return np.array(found)[None, 200:]


def test_the_papers_density_sampler_agrees_with_ours(seed):
    """Angles at three times: with so few statistics, drawing one time after the other mixes."""
    model, rng = ncb.models.VonMises(), np.random.default_rng(seed)
    data = {str(t): model.sample(np.array([1.0, 0.3 * t]), 40, rng) for t in range(3)}
    posterior = ncb.fit(
        model, data, noise=ncb.noise.Uniform(model.space), noise_ratio=1,
        prior=ncb.priors.RandomWalk(rate=1.0, initial="walk"),
        engine=ncb.engines.Gibbs(method="one_at_a_time"),
        tune=200, draws=4000, chains=1, cores=1, seed=seed, progress=False,
    )  # fmt: skip
    theta = posterior.theta.to_numpy()[0]
    beta = -posterior.data["normalizer"]["contrast_log_z"].to_numpy()[0]
    variance = posterior.data["posterior"]["theta.variance"].to_numpy()[0]
    ours = np.column_stack([theta.reshape(len(theta), -1), beta, np.log(variance)])[None]
    parts = density.by_time(posterior, SimpleNamespace(model=model))
    limit, right = allowed(ours.shape[-1]), density_draws(parts, (3, 2), 6000, seed)
    assert effective(right).min() > 500
    assert np.abs(z_scores(ours, right)).max() < limit
    # Broken twins: one drops the offset, one has another prior of lambda.
    designs, offsets, labels = parts
    broken = density_draws((designs, [0 * each for each in offsets], labels), (3, 2), 1000, seed)
    assert np.abs(z_scores(ours, broken)).max() > limit
    broken = density_draws(parts, (3, 2), 1000, seed, rate=5.0)
    assert np.abs(z_scores(ours, broken))[-1] > limit


def test_score_matching_is_the_minimum_of_the_loss(seed):
    from ncbayes.score import score_loss

    simulated = ncb.datasets.torus_chain(80, nodes=3, seed=seed)
    theta, ridged = torus.score_matching(simulated.model, simulated.data)
    loss = score_loss(simulated.model, simulated.data)
    assert not ridged
    np.testing.assert_allclose(loss.gram @ theta, loss.shift, atol=1e-8)
    # Two points cannot tell 18 parameters.
    few, ridged = torus.score_matching(simulated.model, simulated.data[:2])
    assert ridged
    assert np.isfinite(few).all()


def test_all_tables_and_the_picture_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "has_nuts", lambda: False)
    monkeypatch.setattr(cost, "MOST_DENSE", 40)
    monkeypatch.setattr(compare, "QUICK", replace(page.QUICK, data_sets=2))
    said = []
    written = compare.run(tmp_path / "new", True, said.append)
    assert [path.name for path in written] == ["comparison.md", "comparison.png"]
    text = (tmp_path / "new" / "comparison.md").read_text(encoding="utf-8")
    assert text.startswith("# ncbayes beside the alternatives\n\n`ncbayes bench --qu")
    for number in range(1, 6):
        assert f"\n## {number}. " in text
    assert "![Milliseconds of a sweep against N, p, d and T](comparison.png)" in text
    assert (tmp_path / "new" / "comparison.png").stat().st_size > 10_000
    assert "| 1 | dense NumPy Gibbs | sampled | " in text
    assert "| score matching | " in text
    assert text.count("| SciPy KDE, time by time | ") == 2
    # Beyond the most parameters the dense cell and its ratio are empty.
    row = next(line for line in text.splitlines() if line.startswith("| angles d | 5 | 120 | 51 |"))
    assert row.endswith(" |  |  |")
    assert "NumPyro is not installed" in text
    assert "`pip install 'ncbayes[bench]'`" in text
    assert "| NumPyro NUTS |" not in text
    assert "\n## What the numbers say\n\n- Torus graph, nu = 1, against dense NumPy Gibbs: " in text
    assert "pip install 'ncbayes[bench]'" in said[0]
    assert any("torus, nu = 1: dense NumPy" in line for line in said)


def test_the_reading_names_what_we_lose():
    parts = [
        page.Part("a", "", {"fast, NUTS": 2.0, "slow, NUTS": 0.5}, ["A sentence."]),
        page.Part("b", "", {"seconds, ncbayes, other settings": 0.1}),
    ]
    found = compare.reading(parts)
    assert "- A sentence.\n" in found
    assert "Of 2 ratios, 1 are 1 or more. ncbayes is behind in: slow, NUTS (0.5)." in found
    assert "behind" not in compare.reading([page.Part("a", "", {"fast, NUTS": 2.0})])


def test_tables_have_bold_ratios_and_empty_cells():
    text = page.table(["x", "ratio"], [["1", "2"], ["3", ""]])
    assert text == "| x | **ratio** |\n|---|---|\n| 1 | **2** |\n| 3 |  |"
    assert [page.digits(x) for x in (0.01234, 12.34, 1234.5, np.nan)] == [
        "0.0123", "12.3", "1234", "",
    ]  # fmt: skip
    assert page.with_error([1.0, 3.0], 1) == "2.0 ± 1.0"
    assert page.with_error([1.0], 1) == "1.0"


@pytest.mark.slow
def test_nuts_draws_densities_from_where_it_was_tuned():
    pytest.importorskip("numpyro", reason="NumPyro, the extra bench, is not installed")
    problem = density_mixing.Problem(1, times=2, n=20)
    ours, posterior = density_mixing.ours(problem, ncb.engines.Joint(), 200, 1500)
    theirs = density_mixing.theirs(problem, posterior, 200, 300)
    assert theirs.beta.shape == (300, 2)
    assert theirs.compilation > 0
    assert theirs.kept > 0
    assert density_mixing.difference(ours, theirs) < allowed(2 * density_mixing.PLACES + 3)

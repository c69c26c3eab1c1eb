"""Torus graphs under a horseshoe, end to end: found edges, interruptions, groups, files."""

import os

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import chains

SMALL = ncb.datasets.torus_chain(n=80, nodes=4, seed=3)
OPTIONS = {"noise": "matched", "draws": 25, "tune": 15, "chains": 2, "seed": 1, "progress": False}


def run(data=SMALL.data, **options):
    with pytest.warns(ncb.FitWarning):
        return ncb.fit(SMALL.model, data, **{**OPTIONS, "cores": 1, **options})


def assert_same(one, other):
    for name, values in one.data["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, other.data["posterior"][name], err_msg=name)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_the_chain_of_the_paper_is_found(seed):
    """12 nodes, 200 rows, everything by default but the number of draws."""
    simulated = ncb.datasets.torus_chain(seed=seed)
    posterior = ncb.fit(
        simulated.model, simulated.data, draws=500, tune=300, chains=2, seed=seed, progress=False
    )
    found = ncb.graphs.edges(posterior)
    selected = found[found["selected"]]
    true = {tuple(edge) for edge in simulated.edges}
    hits = [(row.node1, row.node2) in true for row in selected.itertuples()]
    # The paper finds 99.6 % of the edges with 99.9 % precision by the same rule.
    assert sum(hits) >= 10
    assert len(hits) - sum(hits) <= 2
    theta = posterior.theta.to_numpy()[:, :, 0]
    low, high = np.quantile(theta, [0.05, 0.95], axis=(0, 1))
    assert np.mean((low <= simulated.theta) & (simulated.theta <= high)) > 0.85
    z = (posterior.log_z.mean() - simulated.log_z) / posterior.log_z.std()
    assert abs(float(z)) < 6
    weak = ncb.graphs.edges(posterior, rule="interval", level=0.9)
    assert weak["selected"].sum() <= len(hits) + 3


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_without_a_horseshoe_the_same_graph_is_lost(seed):
    """What the recovery above would not survive: a weak prior on 288 parameters."""
    simulated = ncb.datasets.torus_chain(seed=seed)
    posterior = ncb.fit(
        simulated.model,
        simulated.data,
        prior=ncb.priors.Normal(1.0),
        noise="matched",
        draws=300,
        tune=100,
        chains=1,
        seed=seed,
        progress=False,
    )
    found = ncb.graphs.edges(posterior, rule="median")
    assert found["selected"].sum() > 40


@pytest.mark.parametrize("form", ["conditional", "likelihood"])
def test_a_resumed_run_equals_an_uninterrupted_one(form, tmp_path, monkeypatch):
    options = {"prior": ncb.priors.Horseshoe(slab_form=form)}
    whole = run(**options)
    monkeypatch.setattr(chains, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(chains, "BLOCK_SECONDS", 0.0)
    replace = os.replace
    for moment in [3, 30, 60]:
        calls = 0

        def fail(source, target, moment=moment):
            nonlocal calls
            calls += 1
            if calls == moment:
                raise KeyError("killed")
            replace(source, target)

        folder = tmp_path / str(moment)
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", fail)
            with pytest.raises(KeyError, match="killed"):
                ncb.fit(SMALL.model, SMALL.data, **OPTIONS, cores=1, checkpoint=folder, **options)
        assert_same(run(checkpoint=folder, **options), whole)


def test_draws_do_not_depend_on_the_number_of_processes():
    assert_same(run(cores=1), run(cores=2))


def test_another_prior_is_another_run(tmp_path):
    run(checkpoint=tmp_path / "run")
    with pytest.raises(ncb.InputError, match="prior of theta"):
        ncb.fit(
            SMALL.model,
            SMALL.data,
            prior=ncb.priors.Horseshoe(slab=0.5),
            checkpoint=tmp_path / "run",
            **OPTIONS,
        )


def test_groups_have_their_own_local_scales_and_share_tau():
    posterior = run(data={"a": SMALL.data[:40], "b": SMALL.data[40:]})
    tree = posterior.data["posterior"]
    assert tree["theta.local"].shape == (2, 25, 2, 8 + 6)
    assert tree["theta.tau"].shape == (2, 25, 1)


def test_files_keep_the_scales(tmp_path):
    posterior = run()
    posterior.save(tmp_path / "graph.nc")
    assert_same(ncb.load(tmp_path / "graph.nc"), posterior)


def test_marginals_may_have_a_prior_of_their_own():
    posterior = run(prior={"marginal": ncb.priors.Normal(2.0)})
    assert {"edge.local", "edge.tau"} <= set(posterior.data["posterior"].data_vars)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_h_bayes_takes_the_same_prior():
    posterior = ncb.fit(
        SMALL.model,
        SMALL.data,
        prior=ncb.priors.Horseshoe(slab=None),
        engine="hyvarinen",
        draws=200,
        tune=100,
        seed=1,
        cores=1,
        progress=False,
    )
    found = ncb.graphs.edges(posterior).set_index(["node1", "node2"])["strength"]
    assert set(found.index[:3]) == {("x1", "x2"), ("x2", "x3"), ("x3", "x4")}

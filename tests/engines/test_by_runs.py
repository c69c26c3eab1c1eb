"""Sweeps by run under a horseshoe: the law they leave invariant, and the routes they take."""

import re
from dataclasses import replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.base import Draw
from ncbayes.contrast import Target, contrast
from ncbayes.engines import Gibbs, runs
from ncbayes.priors import Horseshoe, Normal
from ncbayes.priors.blocks import Blocks, Part, blocks
from ncbayes.problem import noise_set
from ncbayes.testing import check_engine


def of_coef(prior):
    """For the targets of check_engine: two statistics and c."""
    return Blocks((Part("theta", prior, 0, 2), Part("normalizer", Normal(1.0), 2, 3)))


GROUPED = replace(Horseshoe(), runs=(2,))
VARIANTS = {
    "grouped, two groups": (GROUPED, 2),
    "slab as likelihood": (replace(GROUPED, slab_form="likelihood"), 1),
    "fixed tau, one not shrunk": (
        replace(Horseshoe(tau=0.4), runs=(1, 1), relative=np.array([2.0, np.inf])),
        1,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "groups"), VARIANTS.values(), ids=VARIANTS)
def test_sweeps_leave_the_posterior_invariant(prior, groups, seed):
    check_engine(Gibbs(method="runs"), of_coef(prior), groups=groups, seed=seed)


class WrongForm(Horseshoe):
    """Says that the slab is fictitious, and draws theta as if it were not."""

    def clusters(self, state, shape):
        found = super().clusters(state, shape)
        return replace(found, fictitious=~found.fictitious)


@pytest.mark.slow
def test_the_other_form_of_the_slab_is_rejected(seed):
    prior = WrongForm(slab=0.5, runs=(2,), relative=np.ones(1))
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(Gibbs(), of_coef(prior), seed=seed)


def test_a_target_that_the_data_say_nothing_about():
    prior = Horseshoe(tau=1e-8)
    draw = stepped(torus_target(prior=prior), 12)
    assert np.abs(draw.coef[0, :-1]).max() < 1e-3


def torus_target(nodes=4, rows=60, prior=None):
    rng = np.random.default_rng(5)
    model = ncb.models.TorusGraph(nodes)
    x = rng.uniform(0, 2 * np.pi, (rows, nodes))
    x[:, 1] = (x[:, 0] + 0.5 * rng.standard_normal(rows)) % (2 * np.pi)
    noise = noise_set(ncb.noise.Uniform(model.space), x, 2 * rows, rng)
    full = blocks(prior or Horseshoe(), model.groups, None, model)
    return Target((contrast(model, x, noise),), full)


def stepped(target, steps=3, **settings):
    engine, rng = Gibbs(**settings), np.random.default_rng(2)
    draw = engine.start(target, rng)
    for _ in range(steps):
        draw = engine.step(target, draw, rng)
    return draw


def test_columns_that_are_not_kept_give_the_same_draws(monkeypatch):
    """The structured design is never formed then, neither whole nor in part that stays."""
    kept = stepped(torus_target())
    monkeypatch.setattr(runs, "KEPT_ENTRIES", 0)
    monkeypatch.setattr(runs, "BLOCK_ENTRIES", 1000)
    streamed = stepped(torus_target())
    np.testing.assert_allclose(streamed.coef, kept.coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        streamed.scales["theta.local"], kept.scales["theta.local"], rtol=1e-6
    )


def test_columns_that_are_used_once_are_not_kept():
    """Noise that is new in every sweep makes a target that does not last."""
    target = torus_target()
    once = replace(target, lasting=False)
    scales = target.prior.draw(target.shape, np.random.default_rng(1))
    assert runs.layout_of(target, scales).rows[0] is not None
    assert runs.layout_of(once, scales).rows == (None,)


def test_blocks_of_runs_cover_all_of_them_once():
    target = torus_target(nodes=6)
    state = target.prior.draw(target.shape, np.random.default_rng(0))
    clusters = target.prior.clusters(state, target.shape)
    blocks_ = runs.blocks_of(clusters, points=20_000)
    assert [first for first, _ in blocks_[1:]] == [last for _, last in blocks_[:-1]]
    assert (blocks_[0][0], blocks_[-1][1]) == (0, len(clusters.starts))
    widths = [clusters.sizes[first:last].sum() for first, last in blocks_]
    assert max(widths) <= runs.BLOCK_ENTRIES // 20_000
    assert len(blocks_) > 3


def test_log_odds_follow_the_coefficients():
    target = torus_target()
    draw = stepped(target)
    after, log_odds = runs.step(target, draw, np.random.default_rng(1))
    assert (after.coef != draw.coef).all()
    np.testing.assert_allclose(log_odds, target.contrasts[0].log_odds(after.coef[0]), atol=1e-10)


def test_columns_are_picked_as_rows():
    """Neighbours and others, of a design that is kept and of one that is not."""
    design = torus_target().contrasts[0].design
    columns, dense = np.array([0, 3, 4, 5, 11]), design.dense()
    for kept in (None, np.ascontiguousarray(dense.T)):
        np.testing.assert_allclose(runs.picked(design, kept, columns), dense[:, columns].T)


@pytest.mark.parametrize("tau", [None, 0.3])
def test_chains_begin_at_zero_with_small_scales(tau):
    target = torus_target(prior=Horseshoe(tau=tau))
    draw = runs.shrunk(target, np.random.default_rng(1))
    assert not draw.coef[0, :-1].any()
    assert draw.coef[0, -1] != 0
    name = "theta.local" if tau else "theta.tau"
    assert (draw.scales[name] == runs.SMALL).all()


def test_a_pair_that_is_forced_out_stays_out():
    target = torus_target(prior=Horseshoe(edge_scales={("x1", "x2"): 0}))
    assert np.abs(stepped(target).coef[0, 8:12]).max() < 1e-4
    free = stepped(torus_target()).coef[0, 8:12]
    assert np.abs(free).max() > 0.1


def test_runs_need_a_prior_that_has_them():
    with pytest.raises(ncb.InputError, match=re.escape("method 'runs' needs a prior with local")):
        stepped(torus_target(prior=Normal(1.0)), method="runs")


def test_joint_draws_and_sweeps_by_run_agree(seed):
    """Two kernels that share neither the draw of coef nor that of the scales; z-scores of means."""
    from arviz_stats.base import array_stats

    found = []
    for settings in ({"method": "cholesky"}, {"method": "runs"}):
        engine, rng = Gibbs(**settings), np.random.default_rng(seed)
        target = torus_target(nodes=2, rows=40)
        draw = engine.start(target, rng)
        draws = []
        for k in range(3500):
            draw = engine.step(target, draw, rng)
            if k >= 500:
                draws.append(np.append(draw.coef[0], np.log(draw.scales["theta.tau"])))
        found.append(np.array(draws))
    means, errors = [], []
    for each in found:
        sizes = [
            array_stats.ess(each[None, :, k], chain_axis=0, draw_axis=1)
            for k in range(each.shape[1])
        ]
        means.append(each.mean(axis=0))
        errors.append(each.var(axis=0) / np.array(sizes))
    z = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    assert np.abs(z).max() < 5.5
    shifted = found[1].mean(axis=0) + 0.5 * found[1].std(axis=0)
    assert (np.abs(means[0] - shifted) / np.sqrt(errors[0] + errors[1])).max() > 5.5


def test_facts_of_a_sweep():
    draw = stepped(torus_target(), 8)
    assert isinstance(draw, Draw)
    assert set(draw.stats) == {"log_likelihood", "largest_log_odds", "cg_iterations"}

"""Grades by numbers, one verdict over them, and advice that is right."""

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import diagnosis, diagnostics, mixing
from ncbayes.concerns import Concern, Verdict, alarms, worst

SHORT = {"draws": 400, "tune": 100, "chains": 2, "cores": 1, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def angle():
    model = ncb.models.VonMises()
    data = model.sample(np.array([1.2, 0.3]), 150, np.random.default_rng(1))
    return ncb.fit(model, data, noise="matched", noise_ratio=20, **SHORT)


def with_changes(posterior, **attributes):
    tree = posterior.data.copy(deep=True)
    tree.attrs.update(attributes)
    return tree


def concern(tree, kind):
    (found,) = [each for each in diagnosis.concerns(tree) if each.kind == kind]
    return found


def test_the_limit_of_r_hat_holds_for_chains_that_mix(seed):
    """R-hat of independent draws passes 1.01 by chance; the limit knows how often."""
    rng = np.random.default_rng(seed)
    limit = mixing.r_hat_limit(400.0, 2)
    above = passed = 0
    for _ in range(300):
        *_, r_hat = diagnostics.convergence(rng.normal(size=(2, 200)), np.zeros(200, int))
        above += r_hat > diagnostics.WORST_R_HAT
        passed += r_hat > limit
    assert above > 10  # which is why there is a limit
    assert passed <= 2
    assert mixing.r_hat_limit(10_000.0, 4) == diagnostics.WORST_R_HAT
    # The broken twin: one chain elsewhere.
    shifted = rng.normal(size=(2, 200)) + np.array([[0.0], [1.0]])
    assert diagnostics.convergence(shifted, np.zeros(200, int))[2] > limit


def rows(*r_hats, effective=5000.0):
    return [(f"x{k}", effective, effective, r_hat) for k, r_hat in enumerate(r_hats)]


def test_a_few_r_hats_a_little_high_are_a_note_and_many_an_alarm():
    good = mixing.graded_convergence(rows(*[1.0] * 100), 4, 1000)
    assert (good.grade, good.remedy) == ("good", "")
    note = mixing.graded_convergence(rows(*[1.0] * 372, 1.011, 1.012), 4, 1000)
    assert (note.grade, note.remedy) == ("fair", "")
    assert note.line == "R-hat is a little above 1.01 for 2 of 374 quantities (worst 1.012, x373)"
    many = mixing.graded_convergence(rows(*[1.0] * 80, *[1.02] * 20), 4, 1000)
    assert many.grade == "poor"
    high = mixing.graded_convergence(rows(*[1.0] * 100, 1.3), 4, 1000)
    assert high.grade == "poor"
    assert high.remedy == "use more draws, e.g. posterior.extend(draws=2000)"


def test_few_effective_draws_give_one_number_of_draws():
    found = mixing.graded_convergence(rows(1.0, effective=200.0), 4, 1000)
    assert found.grade == "poor"
    assert found.facts["more_draws"] == 1000
    assert found.remedy == "use more draws, e.g. posterior.extend(draws=1000)"


@pytest.mark.parametrize(
    ("widening", "grade"),
    [(0.0, "good"), (0.10, "good"), (0.11, "fair"), (0.26, "poor"), (1.01, "failed")],
)
def test_noise_is_graded_by_how_much_wider_it_makes_intervals(angle, widening, grade):
    tree = with_changes(angle)
    tree["noise"]["widening"][:] = widening
    found = concern(tree, "noise")
    assert found.grade == grade
    # The report of the noise uses the same word.
    report = ncb.Posterior(tree).noise_report().verdict
    assert report.startswith(f"The noise is {'no use' if grade == 'failed' else grade}: ")


@pytest.mark.parametrize(
    ("share", "grade"), [(0.01, "good"), (0.1, "fair"), (0.3, "poor"), (0.6, "failed")]
)
def test_mass_elsewhere_is_graded_by_its_share(angle, share, grade):
    tree = with_changes(angle)
    tree["verification"]["strays"][:] = share
    assert concern(tree, "elsewhere").grade == grade


def test_few_rows_may_have_mass_beyond_them_by_chance(angle):
    tree = with_changes(angle)
    tree["verification"]["strays"][:] = 0.15
    rows_left = tree["observed_data"].to_dataset().isel(row=slice(0, 20))
    tree["observed_data"] = type(tree)(rows_left)
    assert concern(tree, "elsewhere").grade == "good"


@pytest.mark.parametrize(("gap", "grade"), [(0.0, "good"), (0.2, "good"), (5.0, "failed")])
def test_log_z_that_is_off_fails(angle, gap, grade):
    tree = with_changes(angle)
    tree["normalizer"]["contrast_log_z"] = tree["posterior"]["log_z"] + gap
    assert concern(tree, "normalizer").grade == grade


def test_log_z_that_may_be_anything_is_said_to_be(angle):
    tree = with_changes(angle)
    wild = np.random.default_rng(1).normal(0, 40, tree["posterior"]["log_z"].shape)
    tree["normalizer"]["contrast_log_z"] = tree["posterior"]["log_z"] + wild
    found = concern(tree, "normalizer")
    assert found.grade == "fair"
    assert "log Z is hardly known" in found.line


def test_means_that_are_off_are_named(angle):
    tree = with_changes(angle)
    tree["verification"]["moments"][:] = 1e40
    found = concern(tree, "moments")
    assert found.grade == "poor"
    assert "is off by more than 1000 standard errors" in found.line


def test_the_verdict_is_the_worst_with_one_thing_to_do(angle):
    verdict = angle.verdict()
    assert verdict.grade == "good"
    assert verdict.usable
    assert verdict.next_step == ""
    assert verdict.line.startswith("The answer can be used: the chains agree; ")
    many = (
        Concern("a", "noise", "fair", "a is so", "mend a"),
        Concern("b", "predictions", "poor", "b is so", "mend b"),
        Concern("c", "predictions", "poor", "c is so", "mend c", short="c"),
        Concern("d", "data", "good", "d is so"),
    )
    verdict = Verdict(many)
    assert worst(many) == verdict.grade == "poor"
    assert verdict.line == "The answer needs attention before it is used: b is so (and 1 more)."
    assert verdict.next_step == "mend b"
    text = repr(verdict)
    assert "predictions: poor\n  b is so; mend b.\n  c is so; mend c." in text
    assert [each.kind for each in alarms(many)] == ["b", "c"]


def test_wide_intervals_are_told_and_not_warned_of():
    poor = Concern("noise", "noise", "poor", "wide")
    assert alarms([poor]) == []
    assert alarms([Concern("noise", "noise", "failed", "wider")])
    assert Verdict((poor,)).grade == "poor"


def test_scales_are_named_by_their_edges():
    model = ncb.models.TorusGraph(["a", "b", "c"])
    data = model.sample(np.full(18, 0.3), 60, np.random.default_rng(1))
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(model, data, noise="matched", **{**SHORT, "draws": 30, "tune": 10})
    names = diagnostics.plain_names(posterior.data)
    assert names["theta.local[0, 0]"] == "the scale of cos a"
    assert names["theta.local[0, 8]"] == "the scale of the edge b - c"
    assert set(names) <= set(posterior.summary().index)
    assert "theta.local" not in " ".join(posterior.warning_lines())


def test_a_prior_that_shrinks_is_named_where_there_are_many_parameters(angle):
    tree = with_changes(angle)
    assert not diagnosis.too_many_parameters(tree)
    few = tree["observed_data"].to_dataset().isel(row=slice(0, 8))
    tree["observed_data"] = type(tree)(few)
    assert diagnosis.too_many_parameters(tree)
    tree["noise"]["widening"][:] = 0.5
    tree["noise"]["ideal_noise"][:] = 10.0
    assert "prior=ncbayes.priors.Horseshoe()" in concern(tree, "noise").remedy

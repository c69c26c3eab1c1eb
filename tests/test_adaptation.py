"""Noise that moves toward the model before the chains: reproducible, resumable, and right."""

import dataclasses
import math
import os
import signal
import threading
import types
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes import adaptation, asymptotics, diagnostics, progress
from ncbayes.noise import Adaptive, Annealed, Resampled
from ncbayes.noise.tempered import REASONS, Refused, Tempering

MODEL = ncb.models.VonMises()
GRAPH = ncb.models.TorusGraph(2, marginal=False, reflectional=False)
DATA = MODEL.sample(np.array([2.0, 1.0]), 60, np.random.default_rng(0))
PAIRS = GRAPH.sample(np.array([1.0, 0.5]), 60, np.random.default_rng(0))
GROUPS = {"one": DATA[:40], 2: DATA[40:]}
ADAPTIVE = Adaptive(batch=6, updates=4, alpha=0.5)
NUMBERS = {"alpha", "log_z", "log_z_error", "effective", "work", "kept", "kept_before", "made"}


def run(data=DATA, model=MODEL, noise=ADAPTIVE, **options):
    settings = {"draws": 20, "tune": 10, "chains": 2, "seed": 5, "cores": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, noise=noise, **{**settings, **options})


@pytest.fixture
def restless(monkeypatch):
    """All updates are tried, however little they gain."""
    monkeypatch.setattr(adaptation, "SETTLED", -2.0)


def record(posterior):
    stored = posterior.data["adaptation"].to_dataset()
    return {name: stored[name].to_numpy() for name in stored.data_vars}


def assert_same(one, other):
    """The same draws, noise and record, bit for bit."""
    for name in ("posterior", "noise", "adaptation"):
        assert one.data[name].to_dataset().equals(other.data[name].to_dataset()), name


@pytest.mark.parametrize(
    ("model", "data"), [(MODEL, DATA), (GRAPH, PAIRS)], ids=["resampled", "annealed"]
)
def test_the_seed_decides(model, data, seed):
    one, other = run(data, model, seed=seed), run(data, model, seed=seed)
    assert_same(one, other)
    another = run(data, model, seed=seed + 1)
    assert not np.array_equal(another.theta, one.theta)
    assert not np.array_equal(record(another)["kept_before"], record(one)["kept_before"])


@pytest.mark.parametrize(
    ("model", "data"), [(MODEL, DATA), (GRAPH, PAIRS)], ids=["resampled", "annealed"]
)
def test_chains_and_cores_change_nothing(model, data):
    two, three = run(data, model, chains=2), run(data, model, chains=3, cores=2)
    np.testing.assert_array_equal(two.theta, three.theta[:2])
    np.testing.assert_array_equal(two.log_z, three.log_z[:2])
    assert two.data["adaptation"].to_dataset().equals(three.data["adaptation"].to_dataset())
    assert np.array_equal(two.data["noise"]["points"], three.data["noise"]["points"])


def test_the_record_tells_each_update(restless):
    posterior = run(noise=Adaptive(batch=20, updates=5, alpha=0.5))
    found = record(posterior)
    assert set(found) == {*NUMBERS, "wanted", "reason"}
    assert {values.shape for values in found.values()} == {(5, 1)}
    made, kept, before = (found[name][:, 0] for name in ("made", "kept", "kept_before"))
    # The noise in use is the last one that was better than the one before.
    for k in range(4):
        assert before[k + 1] == (kept[k] if made[k] else before[k])
    np.testing.assert_array_equal(made > 0, kept > before)
    (noise,) = posterior.run.problem.source.noises
    if made.any():
        last = int(np.flatnonzero(made)[-1])
        for name in ("alpha", "log_z", "log_z_error", "effective", "work"):
            assert getattr(noise.tempering, name) == found[name][last, 0]
    assert (found["effective"] >= 0.8).all()
    assert (found["log_z_error"] <= 0.1).all()
    assert posterior.data["adaptation"]["group"].values.tolist() == ["all"]


def test_the_noise_of_the_chains_is_the_one_that_was_made():
    posterior = run(PAIRS, GRAPH, noise=Adaptive(batch=10, updates=1, noise=far(GRAPH.space)))
    (noise,) = posterior.run.problem.source.noises
    assert isinstance(noise, Annealed)
    stored = posterior.data["noise"].to_dataset()
    points = stored["points"].to_numpy()
    theta = noise.tempering.alpha * noise.tempering.theta
    wanted = GRAPH.statistics(points) @ theta - noise.tempering.log_z
    np.testing.assert_allclose(stored["log_density"], wanted, rtol=1e-12)
    assert posterior.data.attrs["schedule"] == "Adaptive"
    assert posterior.data.attrs["noise"].startswith("Annealed")


def far(space):
    """Noise that is right and bad: nearly all of it where there are few data."""
    return ncb.noise.VonMises([3.0] * space.dimension, [6.0] * space.dimension)


def test_the_record_survives_a_file(tmp_path):
    posterior = run(GROUPS)
    posterior.save(tmp_path / "fit.nc")
    loaded = ncb.load(tmp_path / "fit.nc")
    assert loaded.data.identical(posterior.data)
    assert repr(loaded.noise_report()) == repr(posterior.noise_report())


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_extending_is_the_same_as_a_longer_fit(tmp_path):
    longer = run(draws=40)
    assert_same(run(draws=20).extend(20), longer)
    assert_same(run(draws=20, checkpoint=tmp_path / "run").extend(20), longer)


class Killed(Exception):
    pass


@pytest.fixture
def tempers(monkeypatch):
    """A list that grows by one for each tempered density that is made."""
    calls, temper = [], Adaptive.temper

    def counted(self, *arguments):
        calls.append(1)
        return temper(self, *arguments)

    monkeypatch.setattr(Adaptive, "temper", counted)
    return calls


@pytest.mark.parametrize("after", [False, True], ids=["before the save", "after the save"])
@pytest.mark.parametrize("moment", [1, 2, 4, 5])
def test_finished_updates_are_not_run_again(
    moment, after, restless, tempers, tmp_path, monkeypatch
):
    whole = run()
    assert len(tempers) == 4
    tempers.clear()
    calls, save = [], adaptation._save

    def fail(folder, state):
        calls.append(1)
        if after or len(calls) < moment:
            save(folder, state)
        if len(calls) == moment:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(adaptation, "_save", fail)
        with pytest.raises(Killed):
            run(checkpoint=tmp_path)
    assert len(tempers) == moment - 1
    tempers.clear()
    assert_same(run(checkpoint=tmp_path), whole)
    saved = moment if after else moment - 1
    assert len(tempers) == 4 - max(saved - 1, 0)
    tempers.clear()
    assert_same(run(checkpoint=tmp_path), whole)
    assert not tempers


@pytest.mark.parametrize("data", [DATA, GROUPS], ids=["one group", "two groups"])
def test_a_resumed_run_equals_an_uninterrupted_one(data, restless, resumed):
    """Killed at every kind of moment, noise and chains, while files are written."""
    options = {"data": data, "draws": 10, "tune": 5, "chains": 1}
    options["prior"] = ncb.priors.RandomWalk(rate=1.0, initial="walk") if data is GROUPS else None
    whole = run(**options)
    for posterior in resumed(partial(run, **options), [1, 2, 3, 6, 7, 20]):
        assert_same(posterior, whole)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (Adaptive(batch=6, updates=4, alpha=0.4), "settings of the noise"),
        (Adaptive(batch=7, updates=4, alpha=0.5), "settings of the noise"),
        (Adaptive(batch=6, updates=4, alpha=0.5, base="start"), "settings of the noise"),
        (Adaptive(far(MODEL.space), alpha=0.5, batch=6, updates=4), "noise points"),
        (ncb.noise.Fixed(), r"schedule \(was Adaptive, now Fixed\)"),
        ("auto", r"schedule \(was Adaptive, now Auto\)"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_by_name(changed, named, tmp_path):
    whole = run(checkpoint=tmp_path / "run")
    with pytest.raises(ncb.InputError, match=f"holds a run that differs in: .*{named}"):
        run(checkpoint=tmp_path / "run", noise=changed)
    assert_same(run(checkpoint=tmp_path / "run"), whole)


def test_a_damaged_checkpoint_is_said_in_one_sentence(tmp_path):
    run(checkpoint=tmp_path / "run")
    path = tmp_path / "run" / adaptation.FILE
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(ncb.InputError, match=r"adaptation.npz' is missing or damaged; name a new"):
        run(checkpoint=tmp_path / "run")


def test_the_checkpoint_holds_no_pickles(tmp_path):
    run(GROUPS, checkpoint=tmp_path, prior=ncb.priors.RandomWalk(rate=1.0, initial="walk"))
    with np.load(tmp_path / adaptation.FILE, allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored)
        assert any(name.startswith("scales/") for name in stored)


def test_noise_that_is_the_model_already_stays(seed):
    """Nearly uniform noise keeps far less, so that no update is made, and a few are tried."""
    model, theta = ncb.models.VonMises(), np.array([40.0, 0.0])
    data = model.sample(theta, 200, np.random.default_rng(seed))
    start = ncb.noise.VonMises(0.0, 40.0)
    posterior = run(data, noise=Adaptive(start, batch=20, alpha=0.02, updates=5), seed=seed)
    found = record(posterior)
    assert found["made"].tolist() == [[0.0]] * adaptation.MOST_MISSES
    assert (found["kept"] < found["kept_before"]).all()
    assert posterior.run.problem.source.noises == (start,)
    assert "The noise is the one it started with." in posterior.noise_report().lines


def test_bad_noise_is_left(seed):
    data = MODEL.sample(np.array([2.0, 1.0]), 200, np.random.default_rng(seed))
    posterior = run(data, noise=Adaptive(far(MODEL.space), batch=40, updates=5), seed=seed)
    found = record(posterior)
    assert found["made"][0, 0] == 1
    assert found["kept"][found["made"] > 0].max() > 1.5 * found["kept_before"][0, 0]
    assert isinstance(posterior.run.problem.source.noises[0], Resampled)


def test_updates_end_where_nothing_is_gained(tempers, monkeypatch):
    """Shares by trial: the second update gains less than a twentieth."""
    shares = iter([0.2, 0.4, 0.41, 0.9, 0.9])
    monkeypatch.setattr(adaptation, "information_kept", lambda *_: next(shares))
    found = record(run(noise=Adaptive(batch=4, updates=10, alpha=0.5)))
    assert len(tempers) == 2
    assert found["kept"].ravel().tolist() == [0.4, 0.41]
    assert found["kept_before"].ravel().tolist() == [0.2, 0.4]
    assert found["made"].ravel().tolist() == [1, 1]


def test_an_update_that_is_worse_is_taken_back(monkeypatch):
    shares = iter([0.2, 0.4, 0.3, 0.3, 0.3, 0.3])
    monkeypatch.setattr(adaptation, "information_kept", lambda *_: next(shares))
    posterior = run(noise=Adaptive(batch=4, updates=10, alpha=0.5))
    found = record(posterior)
    assert found["made"].ravel().tolist() == [1, 0, 0, 0, 0]
    assert found["alpha"].ravel().tolist() == [0.5, 0.5, 0.25, 0.125, 0.0625]
    (noise,) = posterior.run.problem.source.noises
    assert noise.tempering.log_z == found["log_z"][0, 0] != found["log_z"][1, 0]


def test_a_smaller_alpha_that_is_better_is_taken(monkeypatch):
    shares = iter([0.2, 0.1, 0.3, 0.31])
    monkeypatch.setattr(adaptation, "information_kept", lambda *_: next(shares))
    found = record(run(noise=Adaptive(batch=4, updates=10, alpha=0.8)))
    assert found["alpha"].ravel().tolist() == [0.8, 0.4, 0.8]
    assert found["made"].ravel().tolist() == [0, 1, 1]


def test_what_the_guard_refuses_is_not_tried():
    posterior = run(noise=Adaptive(batch=4, updates=10, largest_error=0.0))
    found = record(posterior)
    assert found["made"].tolist() == [[0.0]]
    for name in ("alpha", "log_z", "work", "kept"):
        assert np.isnan(found[name]).all()
    assert found["reason"].tolist() == [["uncertain normalizer"]]
    assert isinstance(posterior.run.problem.source.noises[0].whole, ncb.noise.VonMises)
    lines = posterior.noise_report().lines
    assert lines[-2] == (
        "1 was refused by the guard: the normalizer of the new noise is too uncertain "
        "(largest_error) at any alpha; at the smallest, its standard error is "
        f"{found['log_z_error'].item():.2g}."
    )


def test_every_update_says_how_it_ended(monkeypatch, tmp_path):
    """One by one: made, made with less alpha, no better, no points, refused by each guard."""
    tempering = Tempering(np.zeros(2), 0.5, 0.0, 0.01, 1.0, 10)
    ends = [
        tempering,
        dataclasses.replace(tempering, alpha=0.2),
        *(Refused(reason, 0.1, 0.3) for reason in REASONS),
    ]
    answers = iter(ends)
    monkeypatch.setattr(Adaptive, "temper", lambda *_: next(answers, tempering))
    shares = iter([0.2, 0.3, 0.4, 0.3, 0.3])
    monkeypatch.setattr(adaptation, "information_kept", lambda *_: next(shares))
    monkeypatch.setattr(adaptation, "_done", lambda state, updates: len(state.record) == 8)
    posterior = run(noise=Adaptive(batch=4, updates=10, alpha=0.5))
    posterior.save(tmp_path / "fit.nc")
    for each in (posterior, ncb.load(tmp_path / "fit.nc")):
        report = each.noise_report()
        words = report.updates["reason"].tolist()
        assert words == ["made", "made with less alpha", *REASONS, "not better"]
        assert report.updates["wanted"].tolist()[:2] == [0.5, 0.5]
        assert "2 of 8 updates of the noise were made." in report.lines
        told = [line for line in report.lines if line.startswith("1 was ")]
        assert told[0].startswith("1 was made with a smaller alpha than asked for (0.2 for 0.5 at")
        guarded = [f"1 was refused by the guard: {words}" for words in REASONS.values()]
        assert all(line.startswith(start) for line, start in zip(told[1:], guarded, strict=False))
        assert told[-1] == (
            "1 was not made: the new noise kept no more of the information than the one before "
            "(30 % after 40 %, at best)."
        )
        assert "made with less alpha" in repr(report)


def test_a_group_without_points_says_so():
    problem = types.SimpleNamespace(source=types.SimpleNamespace(sizes=(0,)))
    assert adaptation.tempered(problem, Adaptive(), (None,), np.zeros((1, 3)), None) == (
        Refused("no points"),
    )


@pytest.mark.parametrize(
    "prior", [ncb.priors.RandomWalk(rate=1.0, initial="walk"), ncb.priors.Normal(3.0)], ids=repr
)
def test_several_groups(prior):
    posterior = run(GROUPS, prior=prior)
    found = record(posterior)
    assert found["made"].shape[1] == 2
    assert posterior.data["adaptation"]["group"].values.tolist() == ["one", "2"]
    assert posterior.theta.sizes["group"] == 2
    assert_same(posterior, run(GROUPS, prior=prior))


def test_groups_adapt_apart(monkeypatch, restless):
    """Two trials of two groups: the first group gains, the second does not."""
    shares = iter([0.2, 0.5, 0.4, 0.3])
    monkeypatch.setattr(adaptation, "information_kept", lambda *_: next(shares))
    posterior = run(GROUPS, noise=Adaptive(batch=4, updates=1, alpha=0.5))
    assert record(posterior)["made"].tolist() == [[1.0, 0.0]]
    one, two = posterior.run.problem.source.noises
    assert isinstance(one, Resampled)
    assert isinstance(two.whole, ncb.noise.VonMises)


def test_noise_by_group_is_where_each_group_starts():
    starts = {"one": far(MODEL.space), "2": ncb.noise.Uniform(MODEL.space)}
    posterior = run(GROUPS, noise=Adaptive(starts, batch=4, updates=1, largest_error=0.0))
    assert posterior.run.problem.source.noises == tuple(starts.values())


class Lazy(ncb.models.TorusGraph):
    """A model whose conditionals forget theta."""

    def sweep(self, theta, x, rng):
        return super().sweep(0 * theta, x, rng)


def test_conditionals_that_are_not_the_model_s_are_refused(seed):
    model = Lazy(2, marginal=False, reflectional=False)
    data = GRAPH.sample(np.array([3.0, 0.0]), 100, np.random.default_rng(seed))
    start = ncb.noise.VonMises([3.0, 0.0], [2.0, 2.0])
    settings = {"alpha": 0.9, "batch": 20, "updates": 1}
    assert isinstance(noise_of(run(data, GRAPH, Adaptive(start, **settings), seed=seed)), Annealed)
    with pytest.raises(ncb.InputError, match=r"annealed by the sweep of .* must leave the model"):
        run(data, model, Adaptive(start, **settings), seed=seed)


def noise_of(posterior):
    (noise,) = posterior.noises.values()
    return noise


def test_noise_that_was_made_can_be_used_again(tmp_path):
    posterior = run(noise=Adaptive(far(MODEL.space), batch=20, updates=1))
    made = noise_of(posterior)
    assert noise_of(run(noise=made)) is made
    posterior.save(tmp_path / "fit.nc")
    with pytest.raises(ncb.InputError, match="loaded from a file holds no noise distributions"):
        _ = ncb.load(tmp_path / "fit.nc").noises


def test_ctrl_c_is_a_keyboard_interrupt(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    handler, pressed, stages = signal.getsignal(signal.SIGINT), threading.Event(), set()

    def press(event):
        stages.add(event.stage)
        if event.sweep >= 20 and not pressed.is_set():
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="while the noise was adapted, before any draw"):
        run(noise=Adaptive(batch=1_000_000), progress=press)
    assert signal.getsignal(signal.SIGINT) is handler
    assert stages == {"noise"}


def test_ctrl_c_costs_no_finished_update(restless, tempers, tmp_path, monkeypatch):
    whole = run()
    tempers.clear()
    temper = Adaptive.temper

    def press(self, *arguments):
        if len(tempers) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return temper(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Adaptive, "temper", press)
        with pytest.raises(KeyboardInterrupt, match="while the noise was adapted"):
            run(checkpoint=tmp_path)
    assert len(tempers) == 3
    tempers.clear()
    assert_same(run(checkpoint=tmp_path), whole)
    assert len(tempers) == 2


def test_progress_tells_of_the_noise_then_of_the_chains(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.001)
    events = []
    run(progress=events.append)
    stages = [event.stage for event in events]
    assert stages == sorted(stages, reverse=True)
    assert set(stages) == {"noise", "chain"}
    noise = [event for event in events if event.stage == "noise"]
    assert {event.sweeps for event in noise} == {(4 + 1) * 6}
    assert max(event.sweep for event in noise) <= 30


def exact_posterior(data, prior_precision):
    """Mean and sds of theta of a von Mises model on a grid, with its own likelihood."""
    total = MODEL.statistics(data).sum(axis=0)
    center = total / len(data)
    radius = np.hypot(*center)
    # About the maximum: I_1(k) / I_0(k) = radius, near enough for the middle of a grid.
    k = radius * (2 - radius**2) / (1 - radius**2)
    axes = [k * c / radius + np.linspace(-1.2, 1.2, 101) for c in center]
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log = theta @ total - len(data) * np.array([MODEL.log_partition(each) for each in theta])
    log -= np.einsum("ij,jk,ik->i", theta, prior_precision, theta) / 2
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = weights @ theta
    return mean, np.sqrt(weights @ (theta - mean) ** 2)


def recovered(seed, **options):
    """Errors of the contrastive posterior means, in sds, against the exact likelihood."""
    data = MODEL.sample(np.array([2.0, 1.0]), 800, np.random.default_rng([seed, 1]))
    settings = {"draws": 1000, "tune": 120, "chains": 2, "seed": seed, "cores": 1}
    posterior = ncb.fit(MODEL, data, prior=ncb.priors.Normal(10.0), progress=False,
                        **settings, **options)  # fmt: skip
    mean, _ = exact_posterior(data, np.eye(2) / 100)
    theta = posterior.theta.to_numpy().reshape(-1, 2)
    return posterior, (theta.mean(axis=0) - mean) / theta.std(axis=0)


LIMIT = -ndtri(1e-6 / 4)


def test_the_posterior_is_that_of_the_exact_likelihood_but_for_the_noise(seed):
    """And with enough draws the fit gives no warning: here warnings are errors."""
    posterior, scores = recovered(
        seed, noise=Adaptive(far(MODEL.space), alpha=0.8, batch=100, updates=1)
    )
    assert record(posterior)["made"].any()
    assert np.abs(scores).max() < LIMIT


def test_a_density_that_forgets_the_model_is_seen(seed, monkeypatch):
    """The broken twin: points from the tempered noise, with the density of its base."""
    monkeypatch.setattr(Resampled, "log_density", lambda self, x: self.base.log_density(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        _, scores = recovered(
            seed, noise=Adaptive(far(MODEL.space), alpha=0.8, batch=100, updates=1)
        )
    assert np.abs(scores).max() > LIMIT


def stored_share(posterior):
    return posterior.data["noise"]["information_kept"].to_numpy()[0, 0]


def some_draws(posterior):
    """Those at which information is looked at."""
    coef = np.concatenate([chain.draws["coef"][:, 0] for chain in posterior.run.chains])
    return coef[np.arange(8) * len(coef) // 8]


@pytest.mark.parametrize(
    "noise",
    ["matched", ncb.noise.Gamma(1.0, 0.3), Adaptive(batch=10, updates=2)],
    ids=["matched", "wide", "adaptive"],
)
@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_the_information_kept_is_that_of_the_theory(noise, ratio, seed):
    """With one statistic it is the inverse square of the widening, at this ratio and others."""
    model = ncb.models.Exponential()
    data = model.sample(np.array([2.0]), 80, np.random.default_rng(seed))
    posterior = run(data, model, noise=noise, noise_ratio=ratio, seed=seed)
    problem = posterior.run.problem
    (contrast,) = problem.target(problem.source.fixed(0)).contrasts
    shares = [
        diagnostics.information_kept(contrast.design, contrast.log_odds(draw))
        for draw in some_draws(posterior)
    ]
    assert stored_share(posterior) == pytest.approx(np.mean(shares), rel=1e-10)
    coef = np.concatenate([chain.draws["coef"][:, 0] for chain in posterior.run.chains])
    log_odds = contrast.log_odds(coef.mean(axis=0))
    for more in (0.5, 1.0, 4.0, 100.0):
        (width,) = asymptotics.observed(posterior, noise_ratio=more * ratio).relative_width
        share = diagnostics.information_kept(contrast.design, log_odds, more)
        assert share == pytest.approx(width**-2, rel=1e-10)


def test_the_information_kept_by_several_statistics_is_the_formula(seed):
    posterior = run(seed=seed)
    problem = posterior.run.problem
    (contrast,) = problem.target(problem.source.fixed(0)).contrasts
    shares = []
    for draw in some_draws(posterior):
        rho = 1 / (1 + np.exp(-contrast.log_odds(draw)))
        for column in contrast.design.dense()[:, :-1].T:
            p, w = rho / rho.sum(), rho * (1 - rho) / np.sum(rho * (1 - rho))
            exact = p @ column**2 - (p @ column) ** 2
            kept = w @ column**2 - (w @ column) ** 2
            shares.append(p @ (1 - rho) * kept / exact)
    assert stored_share(posterior) == pytest.approx(np.mean(shares), rel=1e-9)


def test_nothing_is_kept_where_every_label_is_certain():
    (contrast,) = run().run.problem.target(run().run.problem.source.fixed(0)).contrasts
    certain = np.where(contrast.is_data, 1e4, -1e4)
    assert diagnostics.information_kept(contrast.design, certain) == 0.0
    assert diagnostics.information_kept(contrast.design, np.full(len(certain), -1e4)) == 0.0


def test_ideal_noise_keeps_its_share(seed):
    """Noise from the model itself: log odds of log n / m everywhere keep m / (n + m)."""
    (contrast,) = run(seed=seed).run.problem.target(run().run.problem.source.fixed(0)).contrasts
    for ratio in (0.5, 1.0, 4.0):
        flat = np.full(len(contrast.is_data), -math.log(ratio))
        share = diagnostics.information_kept(contrast.design, flat)
        assert share == pytest.approx(ratio / (1 + ratio))


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_checkpoint_against_other_noise_is_refused(tmp_path, monkeypatch):
    """The settings look the same, but what they make is not: a library or a function changed."""
    run(checkpoint=tmp_path)
    (tmp_path / adaptation.FILE).unlink()
    temper = Adaptive.temper

    def other(self, model, theta, base, size, rng):
        return temper(self, model, 0.5 * theta, base, size, rng)

    monkeypatch.setattr(Adaptive, "temper", other)
    with pytest.raises(ncb.InputError, match="holds a run against other noise"):
        run(checkpoint=tmp_path)


@pytest.mark.parametrize("schedule", [ncb.noise.Fresh, partial(ncb.noise.Pooled, sets=2)])
def test_a_schedule_draws_from_the_noise_that_was_made(schedule, restless, resumed):
    """Algorithm 3, then new draws of what it made: in every sweep, or a few sets of them.

    By one engine, which "auto" would choose by the schedule.
    """
    options = {"engine": "gibbs"} if schedule is ncb.noise.Fresh else {}
    made = run(PAIRS, GRAPH, **options)
    once = run(PAIRS, GRAPH, schedule(ADAPTIVE))
    for name, values in record(made).items():
        np.testing.assert_array_equal(record(once)[name], values)
    assert "Annealed" in once.data.attrs["noise"]
    assert not np.array_equal(once.theta, made.theta)
    for again in resumed(partial(run, PAIRS, GRAPH, schedule(ADAPTIVE)), [2, 6, 9]):
        assert_same(again, once)


def test_a_schedule_of_chosen_noise_has_a_ratio():
    posterior = run(noise=ncb.noise.Pooled(ncb.noise.Auto(), sets=2))
    assert posterior.data.attrs["noise_choice"]
    assert set(posterior.data["sample_stats"]["noise_set"].to_numpy().ravel()) == {0, 1}

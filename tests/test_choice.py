"""Noise that is chosen among candidates, for models that can't simulate themselves.

What is tried, what is taken, and whether the reasons are told. Of models that can, see test_rounds.
"""

import os
import re
import signal
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import adaptation, chains, choice, preparation, resources
from ncbayes.models import Exponential, Gamma, Gaussian, Ising, TorusGraph, VonMises
from ncbayes.noise import Adaptive, Auto, Carried
from ncbayes.noise.auto import families
from ncbayes.noise.tempered import FEW_EFFECTIVE, Refused

QUICK = Auto(batch=8, rounds=1, most_ratio=10)
OPTIONS = {"draws": 20, "tune": 10, "chains": 2, "seed": 5, "cores": 1, "progress": False}


@dataclass(frozen=True)
class Ramp:
    """A user's model on a box or a region: ``theta_1 x + theta_2 x^2``."""

    space: ncb.spaces.Box | ncb.spaces.Region = ncb.spaces.Box([0.0], [2.0])  # noqa: RUF009

    @property
    def groups(self):
        return {"ramp": ("x", "x^2")}

    def statistics(self, x):
        return np.column_stack([x[:, 0], x[:, 0] ** 2])

    def log_base(self, x):
        return np.zeros(len(x))


@dataclass(frozen=True)
class Bare:
    """A model of the library as a user might write it: what it needs, and nothing it can do."""

    model: Any

    space = property(lambda self: self.model.space)
    groups = property(lambda self: self.model.groups)

    def statistics(self, x):
        return self.model.statistics(x)

    def log_base(self, x):
        return self.model.log_base(x)


def drawn(model, theta, rows=60):
    return model.sample(np.asarray(theta, dtype=float), rows, np.random.default_rng(0))


PLANE = np.array([0.5, 0.5, 1.0, 1.0, 0.4])
TRIANGLE = ncb.spaces.Region.of([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]])
CASES = {
    "von Mises": (Bare(VonMises()), drawn(VonMises(), [2.0, 1.0])),
    "Gaussian": (Bare(Gaussian(2)), drawn(Gaussian(2), PLANE)),
    "torus graph": (Bare(TorusGraph(4)), drawn(TorusGraph(4), np.full(32, 0.1))),
    "Ising": (Bare(Ising(5)), drawn(Ising(5), np.full(15, 0.2))),
    "Gamma": (Bare(Gamma()), np.random.default_rng(0).gamma(3.0, 1.0, (60, 1))),
    "exponential": (Bare(Exponential()), drawn(Exponential(), [2.0])),
    "a user's own": (Ramp(), 2 * np.sqrt(np.random.default_rng(0).random((60, 1)))),
    "a region": (Ramp(TRIANGLE), TRIANGLE.uniform(60, np.random.default_rng(0))),
}
MODEL, DATA = CASES["von Mises"]


def run(data=DATA, model=MODEL, noise=QUICK, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, noise=noise, **{**OPTIONS, **options})


def assert_same(one, other):
    for name in ("posterior", "noise"):
        assert one.data[name].to_dataset().equals(other.data[name].to_dataset()), name
    assert paragraph(one) == paragraph(other)


def paragraph(posterior):
    return posterior.data.attrs["noise_choice"]


@pytest.fixture
def choices(monkeypatch):
    """What choose returned, call by call."""
    found, choose = [], preparation.choose

    def noted(*arguments):
        found.append(choose(*arguments))
        return found[-1]

    monkeypatch.setattr(preparation, "choose", noted)
    return found


@pytest.mark.parametrize(("model", "data"), CASES.values(), ids=CASES)
def test_noise_is_chosen_and_the_choice_explained(model, data, choices, seed):
    one, other = (run(data, model, seed=seed) for _ in range(2))
    assert_same(one, other)
    (found, _), text = choices, paragraph(one)
    tempered = {"model^0.5", "model^0.9"}
    assert set(found.kept) - tempered == {"matched", *families(model.space)}
    for name, share in found.kept.items():
        assert f"{name} {100 * share:.0f} %" in text
    assert text.startswith("Noise chosen: ")
    # What the guard refused may follow.
    assert " % wider than with the exact likelihood." in text
    assert "\n" not in text
    assert one.data.attrs["noise_ratio"] == found.noise_ratio
    assert f"Noise ratio {found.noise_ratio:g} (" in text
    assert 1 <= found.noise_ratio <= 100
    assert one.data["noise"]["noise_points"].to_numpy() == round(60 * found.noise_ratio)
    assert one.data.attrs["schedule"] == "Auto"
    assert one.theta.sizes == {"chain": 2, "draw": 20, "group": 1, **statistics(model)}
    assert "adaptation" not in one.data.children


def statistics(model):
    return {"statistic": sum(map(len, model.groups.values()))}


def test_auto_is_a_word_for_the_default_settings():
    assert_same(run(noise="auto"), run(noise=Auto()))


@pytest.mark.parametrize("other", ["best", "", None])
def test_other_words_and_none_are_refused(other):
    words = (
        'noise must be "auto" (chosen in short trials), "matched" (to the data), a distribution, a '
        f"mapping from groups to distributions or a schedule, got {other!r}"
    )
    with pytest.raises(ncb.InputError, match=f"^{re.escape(words)}$"):
        run(noise=other)


@pytest.mark.parametrize(
    "noise", [Adaptive("matched"), Adaptive({"all": "matched"}), {"all": "matched"}]
)
def test_the_word_matched_stands_alone_or_in_a_schedule(noise):
    words = r'^the word "matched" stands alone .* leave it out, .*matched\(space, data\)$'
    with pytest.raises(ncb.InputError, match=words):
        run(noise=noise)


def by_default(data=DATA, model=MODEL, **options):
    """A fit that says nothing of noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, **{**OPTIONS, **options})


@pytest.mark.parametrize(("model", "data"), CASES.values(), ids=CASES)
def test_automatic_noise_is_the_default_and_explains_itself(model, data, seed):
    posterior = by_default(data, model, seed=seed)
    assert_same(posterior, run(data, model, noise="auto", seed=seed))
    report = posterior.noise_report()
    assert report.lines[0] == paragraph(posterior)
    assert report.lines[0].startswith("Noise chosen: ")
    assert {"matched", *families(model.space)} <= set(report.candidates.index)


def test_the_default_takes_groups():
    groups = {"one": DATA[:40], 2: DATA[40:]}
    posterior = by_default(groups)
    assert_same(posterior, run(groups, noise="auto"))
    assert list(posterior.noises) == ["one", "2"]
    assert "Noise chosen: " in posterior.noise_report().lines[0]


def test_the_default_resumes_with_the_same_draws(tmp_path, monkeypatch, killed):
    whole = by_default()
    monkeypatch.setattr(chains, "SAVE_SECONDS", 0.0)
    killed(lambda: by_default(checkpoint=tmp_path), 12)
    assert (tmp_path / "made.npz").exists()
    assert_same(by_default(checkpoint=tmp_path), whole)
    # Once complete, the same call has nothing to do but to choose again.
    assert_same(by_default(checkpoint=tmp_path), whole)


def test_a_given_ratio_keeps_the_default_noise():
    posterior = by_default(noise_ratio=2)
    assert posterior.data.attrs["noise_ratio"] == 2
    assert_same(posterior, run(noise="auto", noise_ratio=2))


def test_matched_is_a_word_for_fixed_noise_matched_to_the_data(choices):
    word, schedule = run(noise="matched"), run(noise=ncb.noise.Fixed())
    noise = ncb.noise.CrossFitted.match(lambda rows: ncb.noise.matched(MODEL.space, rows), DATA)
    given = run(noise=noise)
    for other in (schedule, given):
        np.testing.assert_array_equal(word.theta, other.theta)
    assert word.data.attrs["schedule"] == "Fixed"
    assert word.data.attrs["noise_ratio"] == 5
    assert not choices


@pytest.mark.parametrize("ratio", [0.5, 2.0, 20.0])
def test_a_given_noise_ratio_is_respected(ratio, choices):
    posterior = run(noise_ratio=ratio)
    assert posterior.data.attrs["noise_ratio"] == ratio
    assert posterior.data["noise"]["noise_points"].item() == 60 * ratio
    assert f"Noise ratio {ratio:g} (as given): the share kept is then" in paragraph(posterior)
    # Trials have the noise that the fit will have, so that the share of the chosen one is told.
    (share,) = re.findall(r"is then about (\d+) %", paragraph(posterior))
    (name,) = [name for name in choices[0].kept if chosen(posterior, name)]
    assert share == f"{100 * choices[0].kept[name]:.0f}"


def chosen(posterior, name):
    noises = tuple(posterior.noises.values())
    return f"Noise chosen: {choice.described(name, noises)}." in paragraph(posterior)


REASONS = [
    (Auto(loss=5.0), 1.0, "enough for intervals at most 500 % wider"),
    (Auto(seconds=1e-9), 1.0, "a chain takes longer than 1e-09 seconds as it is"),
    (Auto(loss=1e-6, most_ratio=2), 2.0, "the largest allowed"),
    (Auto(loss=1e-6, most_ratio=1.2), 1.2, "the largest allowed"),
    (Auto(most_ratio=0.5), 0.5, "the largest allowed"),
    (Auto(loss=1e-6), 100.0, "the largest allowed"),
]


@pytest.mark.parametrize(("settings", "ratio", "reason"), REASONS, ids=lambda each: str(each)[:40])
def test_the_noise_ratio_has_a_reason(settings, ratio, reason):
    posterior = run(noise=Auto(settings.loss, settings.seconds, (), settings.most_ratio, batch=8))
    assert posterior.data.attrs["noise_ratio"] == ratio
    assert posterior.data["noise"]["noise_points"].item() == 60 * ratio
    assert f"Noise ratio {ratio:g} ({reason}): " in paragraph(posterior)


def test_less_noise_than_data_keeps_less():
    """The share that is told is that at the ratio taken."""
    shares = []
    for most in (0.5, 1.0):
        text = paragraph(run(noise=Auto(most_ratio=most, alphas=(), batch=8)))
        shares.append(int(re.findall(r"is then about (\d+) %", text)[0]))
    assert shares[0] < shares[1] - 5


def test_where_every_ratio_was_tried_the_last_is_taken():
    """And not for a lack of time, which there was."""
    text = paragraph(run(noise=Auto(loss=1e-9, most_ratio=150, alphas=(), batch=4), draws=5))
    assert "Noise ratio 150 (the largest allowed): " in text


def test_noise_is_added_only_while_there_is_time(monkeypatch):
    """30 sweeps of 0.1 s for each of (1 + ratio) / 2: 6 s at a ratio of 3."""
    monkeypatch.setattr(choice, "sweep_seconds", lambda target, more: 0.1 * more)
    posterior = run(noise=Auto(loss=1e-6, seconds=6.1, alphas=(), batch=4))
    assert posterior.data.attrs["noise_ratio"] == 3
    assert "(more would take a chain longer than 6.1 seconds)" in paragraph(posterior)


def test_the_ratio_chosen_keeps_what_was_asked_for(choices):
    """The smallest ratio at which intervals are 5 % wider at most, by the trial's own share."""
    posterior = run(noise=Auto(alphas=(), batch=20))
    (shares,) = re.findall(r"is then about (\d+) %", paragraph(posterior))
    assert 100 / 1.05**2 - 0.5 <= int(shares) <= 100


@pytest.fixture
def scripted(monkeypatch):
    """A function that sets the shares that the trials will find, in their order, at any ratio."""
    trial = choice.trial

    def script(*shares):
        left, known = list(shares), []

        def tried(*arguments):
            known.append(left.pop(0))
            return trial(*arguments)

        monkeypatch.setattr(choice, "trial", tried)
        monkeypatch.setattr(adaptation, "information_kept", lambda *_: known[-1])

    return script


ORDER = ["matched", "uniform", "margins", "model^0.5"]


@pytest.mark.parametrize(
    ("shares", "name"),
    [
        ((0.5, 0.5, 0.5, 0.5), "matched"),
        ((0.49, 0.5, 0.49, 0.51), "matched"),
        ((0.1, 0.5, 0.5, 0.51), "uniform"),
        ((0.1, 0.1, 0.25, 0.1), "margins"),
        ((0.1, 0.1, 0.2, 0.25), "model^0.5"),
    ],
)
def test_the_simplest_of_the_best_is_taken(shares, name, scripted, choices):
    scripted(*shares)
    posterior = run(noise=Auto(alphas=(0.5,), rounds=1, batch=4), noise_ratio=1.0)
    assert choices[0].kept == dict(zip(ORDER, shares, strict=True))
    assert chosen(posterior, name)
    share = dict(zip(ORDER, shares, strict=True))[name]
    assert (
        f"the share kept is then about {100 * share:.0f} %, and intervals are about "
        f"{100 * (share**-0.5 - 1):.0f} % wider" in paragraph(posterior)
    )


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ({"matched": 0.19, "tree": 0.31, "model^0.5": 0.32, "model^0.9": 0.39}, "model^0.5"),
        ({"matched": 0.03, "tree": 0.34, "model^0.5": 0.03, "model^0.9": 0.04}, "tree"),
        ({"matched": 0.1, "uniform": 0.1, "model^0.5": 0.2, "model^0.9": 0.4}, "model^0.9"),
        ({"matched": 0.1, "margins": 0.1, "model^0.3": 0.4, "model^0.51": 0.5}, "model^0.3"),
        ({"matched": 0.0, "margins": 0.0}, "matched"),
    ],
)
def test_noise_that_follows_the_data_closely_must_be_clearly_better(kept, name):
    assert choice.choice_among(kept) == name


def test_a_second_round_counts_only_where_it_is_better(scripted, choices):
    scripted(0.1, 0.2, 0.2, 0.4, 0.3)
    run(noise=Auto(alphas=(0.5,), rounds=2, batch=4), noise_ratio=1.0)
    assert choices[0].kept["model^0.5"] == 0.4
    scripted(0.1, 0.2, 0.2, 0.4, 0.5)
    run(noise=Auto(alphas=(0.5,), rounds=2, batch=4), noise_ratio=1.0)
    assert choices[1].kept["model^0.5"] == 0.5


def test_a_round_that_gains_little_is_the_last(scripted, choices):
    scripted(0.1, 0.2, 0.2, 0.4, 0.41)  # a third round would find no share left
    run(noise=Auto(alphas=(0.5,), rounds=4, batch=4), noise_ratio=1.0)
    assert choices[0].kept["model^0.5"] == 0.41


def test_noise_that_keeps_nothing_is_told_without_failing(scripted):
    scripted(0.0, 0.0, 0.0)
    text = paragraph(run(noise=Auto(alphas=(), batch=4)))
    assert "matched 0 %, uniform 0 %, margins 0 %" in text
    assert "Noise ratio 100 (the largest allowed): the share kept is then about 0 %" in text


GREEDY = Auto(loss=1e-6, alphas=(), most_ratio=10, batch=4)


@pytest.fixture
def memory(monkeypatch):
    """A function that sets the memory to what a fit with this noise ratio needs, and a bit."""
    # The look at a fit takes as much for any ratio, and far more than so small a fit.
    monkeypatch.setattr(resources.Size, "_looked_at", lambda size: 0.0)

    def enough_for(ratio, spare=1.01):
        pooled = round(60 * (1 + ratio))
        size = resources.Size((pooled,), 2, 1, False)
        need = sum(size.needed_bytes(OPTIONS["draws"], OPTIONS["chains"]))
        monkeypatch.setattr(resources, "available_bytes", lambda: spare * need / resources.SHARE)

    return enough_for


@pytest.mark.parametrize("ratio", [1.0, 2.0, 5.0])
def test_noise_is_added_only_while_memory_holds_it(ratio, memory):
    assert run(noise=GREEDY).data.attrs["noise_ratio"] == 10
    memory(ratio)
    posterior = run(noise=GREEDY)
    assert posterior.data.attrs["noise_ratio"] == ratio
    assert posterior.data["noise"]["noise_points"].item() == 60 * ratio
    assert f"Noise ratio {ratio:g} (memory holds no more): " in paragraph(posterior)


def test_memory_that_is_enough_for_the_first_ratio_alone_is_enough(memory):
    """A fifth is left free for choices, and not for what has to be."""
    memory(1.0, spare=0.9)
    posterior = run(noise=GREEDY)
    assert "Noise ratio 1 (memory holds no more): " in paragraph(posterior)


def test_memory_counts_the_processes_that_were_asked_for(memory):
    memory(5.0)
    assert run(noise=GREEDY, cores=None).data.attrs["noise_ratio"] == 5
    assert run(noise=GREEDY, cores=2).data.attrs["noise_ratio"] < 5


def test_memory_is_not_named_where_it_is_not_the_limit(memory):
    memory(5.0)
    assert "memory" not in paragraph(run(noise=Auto(loss=5.0, alphas=(), batch=4)))
    assert "(as given)" in paragraph(run(noise=GREEDY, noise_ratio=2.0))


def test_a_resumed_run_keeps_the_ratio_that_memory_allowed(tmp_path, memory):
    memory(2.0)
    first = run(noise=GREEDY, checkpoint=tmp_path)
    memory(10.0)
    assert_same(run(noise=GREEDY, checkpoint=tmp_path), first)
    memory(1.0, spare=resources.SHARE * 1.01)
    with pytest.raises(ncb.InputError, match=r"^this fit needs about .* GB of memory"):
        run(noise=GREEDY, checkpoint=tmp_path)


def test_groups_share_a_kind_of_noise_and_have_their_own():
    groups = {"one": DATA[:40], 2: DATA[40:]}
    posterior = run(groups, prior=ncb.priors.RandomWalk(rate=1.0, initial="walk"))
    assert_same(posterior, run(groups, prior=ncb.priors.RandomWalk(rate=1.0, initial="walk")))
    one, other = posterior.run.problem.source.noises
    assert type(one) is type(other)
    ratio = posterior.data.attrs["noise_ratio"]
    assert posterior.data["noise"]["noise_points"].values.tolist() == [[40 * ratio, 20 * ratio]]


@pytest.mark.parametrize(
    ("model", "rows", "lost"),
    [
        (Bare(TorusGraph(4)), 3, "tree"),
        (Bare(VonMises()), 5, None),
        (Bare(Gaussian(2)), 5, None),
        (Bare(Ising(5)), 7, None),
    ],
    ids=["torus graph", "von Mises", "Gaussian", "Ising"],
)
def test_a_few_rows_are_enough_to_choose(model, rows, lost, choices):
    (data,) = [data for own, data in CASES.values() if own == model]
    run(data[:rows], model)
    assert "matched" in choices[0].kept
    assert lost not in choices[0].kept


def test_a_family_that_can_t_be_fitted_is_left_out(monkeypatch, choices):
    """Kernels of a column need one that varies."""

    class Flat(Ramp):
        @property
        def groups(self):
            return {"ramp": ("x",)}

        def statistics(self, x):
            return x.copy()

    posterior = run(np.full((40, 1), 0.7), Flat())
    assert "margins" in families(Flat().space)
    assert "margins" not in choices[0].kept
    assert "margins" not in paragraph(posterior)


def test_what_the_guard_refuses_is_left_out(monkeypatch, choices):
    monkeypatch.setattr(Adaptive, "temper", lambda *_: Refused(FEW_EFFECTIVE))
    posterior = run()
    assert list(choices[0].kept) == ["matched", "uniform", "margins"]
    assert paragraph(posterior).endswith(
        " model^0.9 was refused by the guard: too few of its points are effective "
        "(least_effective) at any alpha."
    )


def test_a_resumed_run_has_the_same_draws(tmp_path, monkeypatch, killed):
    whole = run()
    monkeypatch.setattr(chains, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(chains, "BLOCK_SECONDS", 0.0)
    for moment in [1, 2, 3, 10, 50]:
        folder = tmp_path / str(moment)
        killed(partial(run, checkpoint=folder), moment)
        assert_same(run(checkpoint=folder), whole)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (replace(QUICK, batch=9), "settings of the noise"),
        (replace(QUICK, loss=0.2), "settings of the noise"),
        ("matched", r"schedule \(was Auto, now Fixed\)"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_by_name(changed, named, tmp_path):
    run(checkpoint=tmp_path)
    with pytest.raises(ncb.InputError, match=f"holds a run that differs in: .*{named}"):
        run(checkpoint=tmp_path, noise=changed)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_extending_is_the_same_as_a_longer_fit():
    """The time that a chain takes is not what limits the noise ratio here."""
    assert_same(run(draws=20).extend(20), run(draws=40))


def test_chains_and_cores_change_nothing():
    two, three = run(chains=2), run(chains=3, cores=2)
    np.testing.assert_array_equal(two.theta, three.theta[:2])
    assert paragraph(two) == paragraph(three)


def test_ctrl_c_is_a_keyboard_interrupt(monkeypatch):
    temper = Adaptive.temper

    def press(self, *arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return temper(self, *arguments)

    monkeypatch.setattr(Adaptive, "temper", press)
    with pytest.raises(KeyboardInterrupt, match="before any draw"):
        run()


def test_candidates_in_words():
    assert choice.described("matched", ()) == "matched to the data"
    assert choice.described("uniform", ()) == "uniform"
    assert choice.described("margins", ()) == "margins fitted to the data"
    tempered = ncb.noise.Annealed(
        ncb.models.Ising(2), ncb.noise.Tempering(np.zeros(3), 0.9, 0.0, 0.0, 1.0, 10)
    )
    words = "the fitted model, tempered by alpha = 0.9"
    assert choice.described("model^0.9", (tempered,)) == words
    lower = replace(tempered, tempering=replace(tempered.tempering, alpha=0.05))
    wanted = f"{words}, lowered to 0.05 by the guard"
    assert choice.described("model^0.9", (tempered, lower)) == wanted


def test_a_ratio_chosen_and_the_same_ratio_given_are_two_runs(tmp_path):
    run(checkpoint=tmp_path, noise_ratio=None)
    with pytest.raises(ncb.InputError, match=r"noise_ratio as given \(was None, now 1\)"):
        run(checkpoint=tmp_path, noise_ratio=1)


@pytest.mark.parametrize(
    "nested",
    [ncb.noise.Pooled(ncb.noise.Fresh()), ncb.noise.Adaptive(QUICK),
     ncb.noise.Adaptive(ncb.noise.Pooled()), {"all": ncb.noise.Adaptive()}, {"all": "auto"}],
    ids=["schedule in schedule", "auto in adaptive", "pooled in adaptive", "mapping", "word"],
)  # fmt: skip
def test_only_noise_that_is_made_stands_in_a_schedule(nested):
    words = r"may stand inside a schedule, .* got .*; fit with it first, .*Pooled\(posterior.noises"
    with pytest.raises(ncb.InputError, match=words):
        run(noise=nested)


def test_words_mean_the_same_inside_a_schedule():
    chosen = run(noise=ncb.noise.Fixed("auto"))
    np.testing.assert_array_equal(chosen.theta, run(noise="auto").theta)
    matched = run(noise=ncb.noise.Fresh("matched"))
    np.testing.assert_array_equal(matched.theta, run(noise=ncb.noise.Fresh()).theta)
    with pytest.raises(ncb.InputError, match='noise must be "auto"'):
        run(noise=ncb.noise.Fresh("best"))


def test_tempered_noise_is_made_where_the_noise_that_would_be_taken_ended():
    """Not where the noise that keeps most ended, if that is too close to be trusted."""
    trials = choice._Trials(None, Auto(), False, lambda: None)
    for name, kept in {"matched": 0.30, "tree": 0.35}.items():
        ended = adaptation.Trial(None, np.zeros((1, 2)), np.array([kept]))
        trials.done[name] = choice._Tried((), ended, {})
    assert trials.chosen == "matched"
    assert trials.best() is trials.done["matched"].trial
    trials.done["tree"] = replace(
        trials.done["tree"], trial=replace(trials.done["tree"].trial, kept=np.array([0.45]))
    )
    assert trials.best() is trials.done["tree"].trial


@pytest.mark.parametrize("case", ["Gaussian", "Gamma", "a region"])
def test_noise_is_carried_to_families_that_have_no_sampler(case):
    model, data = CASES[case]
    settings = Adaptive(method="carried", base="start", batch=20, updates=2, alpha=0.8)
    posterior = run(data, model, noise=settings, tune=60, draws=60)
    (noise,) = posterior.noises.values()
    made = posterior.noise_report().updates
    assert isinstance(noise, Carried) == bool((made["made"] > 0).any())
    assert set(made["reason"]) <= {"made", "not better"}
    assert made["log_z_error"].max() < 0.1
    again = run(data, model, noise=settings, tune=60, draws=60, cores=2)
    np.testing.assert_array_equal(again.theta, posterior.theta)

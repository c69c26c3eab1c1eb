"""Chains: the same draws for any cores and chains, after any interruption, by any detour."""

import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import chains, checkpoints, progress
from ncbayes.base import Segment
from ncbayes.chains import Chain, longest_rectangle
from ncbayes.engines import joint

MODEL = ncb.models.VonMises()
DATA = MODEL.sample(np.array([1.0, 0.5]), 60, np.random.default_rng(0))
GROUPS = {"one": DATA[:40], "two": DATA[40:]}
SCHEDULES = [ncb.noise.Fixed(), ncb.noise.Fresh(), ncb.noise.Pooled(sets=3)]
pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")


def run(data=DATA, **options):
    settings = {"draws": 40, "tune": 10, "chains": 3, "seed": 5, "cores": 1, "progress": False}
    return ncb.fit(MODEL, data, **{"noise": "matched", "noise_ratio": 1, **settings, **options})


def arrays(posterior):
    """Every draw and every number about a sweep, but for its time."""
    trees = [posterior.data["posterior"], posterior.data["sample_stats"]]
    return {
        name: values.to_numpy()
        for tree in trees
        for name, values in tree.to_dataset().data_vars.items()
        if name != "sweep_seconds"
    }


def assert_same(one, other):
    left, right = arrays(one), arrays(other)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_cores_do_not_change_the_draws(schedule):
    options = {
        "data": GROUPS,
        "noise": schedule,
        "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk"),
    }
    assert_same(run(cores=1, **options), run(cores=2, **options))


@pytest.mark.parametrize("engine", ["auto", "gibbs"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_how_sweeps_are_cut_into_blocks_does_not_change_the_draws(schedule, engine, monkeypatch):
    """One by one, and in blocks that grow until the noise or what is kept changes."""
    found = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(chains, "BLOCK_SECONDS", seconds)
        found.append(run(noise=schedule, engine=engine, prior=ncb.priors.HalfCauchyNormal()))
    assert_same(*found)


def test_a_chain_does_not_depend_on_the_number_of_chains():
    few, many = run(chains=2), run(chains=4)
    np.testing.assert_array_equal(few.theta, many.theta[:2])
    assert not np.array_equal(many.theta[0], many.theta[1])


def test_a_group_s_noise_does_not_depend_on_the_other_groups():
    together, alone = run(GROUPS), run({"one": GROUPS["one"]})
    points = together.data["noise"].to_dataset()
    own = points["points"].to_numpy()[points["row_group"].to_numpy() == "one"]
    np.testing.assert_array_equal(own, alone.data["noise"]["points"].to_numpy())


def test_the_seed_decides_the_draws():
    assert_same(run(seed=5), run(seed=5))
    assert not np.array_equal(run(seed=5).theta, run(seed=6).theta)
    assert not np.array_equal(run(seed=None).theta, run(seed=None).theta)
    assert_same(run(seed=np.random.default_rng(3)), run(seed=np.random.default_rng(3)))


def test_the_global_generator_is_not_touched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    run()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("schedule", SCHEDULES[:2], ids=repr)
def test_extending_is_the_same_as_a_longer_fit(schedule):
    longer = run(draws=70, noise=schedule)
    assert_same(run(draws=40, noise=schedule).extend(30), longer)
    assert_same(run(draws=40, noise=schedule).extend(10).extend(20), longer)


def test_extending_pooled_noise_visits_every_set_again():
    posterior = run(draws=6, noise=ncb.noise.Pooled(sets=3, settle=2)).extend(3)
    sets = posterior.data["sample_stats"]["noise_set"].to_numpy()
    np.testing.assert_array_equal(sets, [[0, 0, 1, 1, 2, 2, 0, 1, 2]] * 3)


def test_pooled_plan_shares_the_draws():
    plan = ncb.noise.Pooled(sets=3, settle=4).plan(11, 20)
    assert plan == (Segment(0, 20, 4), Segment(1, 4, 4), Segment(2, 4, 3))
    assert ncb.noise.Pooled(sets=2).plan(10, 21)[1].tune == 5
    with pytest.raises(ncb.InputError, match="at least the number of noise sets"):
        ncb.noise.Pooled(sets=8).plan(7, 10)
    with pytest.raises(ncb.InputError, match="at least 2, got 1; for one set use Fixed"):
        ncb.noise.Pooled(sets=1)
    with pytest.raises(ncb.InputError, match="must not be negative"):
        ncb.noise.Pooled(settle=-1)


def test_fresh_noise_changes_every_sweep_and_fixed_noise_never(monkeypatch):
    seen = []
    target = chains.Problem.target
    monkeypatch.setattr(
        chains.Problem,
        "target",
        lambda self, noise: seen.append(noise.sets[0].points) or target(self, noise),
    )
    run(noise=ncb.noise.Fresh(), chains=1, draws=5, tune=0)
    assert len({points.tobytes() for points in seen}) == 1 + 1 + 5  # checks, start, sweeps
    seen.clear()
    run(noise=ncb.noise.Fixed(), chains=1, draws=5, tune=0)
    assert len({points.tobytes() for points in seen}) == 1


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_a_resumed_run_equals_an_uninterrupted_one(schedule, resumed):
    """Break off at every kind of moment: before, while and after files are written."""
    options = {
        "data": GROUPS,
        "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk"),
        "noise": schedule,
    }
    whole = run(**options)
    for posterior in resumed(partial(run, **options), [1, 2, 3, 20, 47, 90, 150]):
        assert_same(posterior, whole)


def test_a_finished_checkpoint_is_returned_without_sampling(tmp_path, monkeypatch):
    whole = run(checkpoint=tmp_path / "run")
    monkeypatch.setattr(joint.JointKernel, "sweeps", None)
    assert_same(run(checkpoint=tmp_path / "run"), whole)
    with pytest.raises(TypeError, match="not callable"):
        run()


def test_seed_none_resumes_with_the_stored_seed(tmp_path):
    first = run(seed=None, checkpoint=tmp_path / "run")
    assert_same(run(seed=None, checkpoint=tmp_path / "run"), first)


def test_extending_goes_on_in_the_checkpoint(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    longer = run(draws=70)
    assert_same(run(checkpoint=folder).extend(30), longer)
    again = run(checkpoint=folder)
    assert_same(again, run())
    monkeypatch.setattr(joint.JointKernel, "sweeps", None)
    assert_same(again.extend(30), longer)


def test_a_second_extension_of_pooled_noise_is_that_of_the_first_or_refused(tmp_path):
    """Extended by 16, set 0 is left after 6 draws; a chain extended by 40 would still be there."""
    posterior = run(checkpoint=tmp_path / "run", noise=SCHEDULES[2])
    first = posterior.extend(16)
    assert_same(posterior.extend(16), first)
    with pytest.raises(ncb.InputError, match="was extended by another number of draws; extend by"):
        posterior.extend(40)
    assert_same(posterior.extend(16), first)
    assert_same(run(checkpoint=tmp_path / "run", noise=SCHEDULES[2]), posterior)


@pytest.mark.parametrize("schedule", SCHEDULES[:2], ids=repr)
def test_other_noise_may_be_extended_by_any_number_in_any_order(schedule, tmp_path):
    posterior = run(checkpoint=tmp_path / "run", noise=schedule)
    for more in (16, 40, 7):
        assert_same(posterior.extend(more), run(draws=40 + more, noise=schedule))


def assert_is_one_sentence(error):
    assert "\n" not in str(error)
    assert 20 < len(str(error)) < 400


def without_seed(folder):
    path = folder / "run.json"
    record = json.loads(path.read_text())
    del record["seed"]
    path.write_text(json.dumps(record))


def cut(folder):
    path = folder / "chain-0" / "state.npz"
    path.write_bytes(path.read_bytes()[:500])


def flipped(folder):
    path = folder / "chain-0" / "state.npz"
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)


DAMAGE = {
    "run.json without a seed": (without_seed, "is in use for something else; name a new or empty"),
    "no run.json": (lambda folder: (folder / "run.json").unlink(), "is in use for something else"),
    "half of run.json": (
        lambda folder: (folder / "run.json").write_text('{"seed'),
        "is in use for",
    ),
    "a missing chunk": (
        lambda folder: (folder / "chain-0" / "draws-00000000-00000040.npz").unlink(),
        r"file '.*draws-00000000-00000040.npz' is missing or damaged; name a new folder$",
    ),
    "a state cut short": (cut, r"file '.*state.npz' is missing or damaged; name a new folder$"),
    "a state with a wrong bit": (flipped, "state.npz' is missing or damaged"),
    "a state of text": (
        lambda folder: (folder / "chain-0" / "state.npz").write_text("state"),
        "state.npz' is missing or damaged",
    ),
}
BY_LUCK = {
    "an empty state": lambda folder: (folder / "chain-0" / "state.npz").write_bytes(b""),
    "a state of other names": lambda folder: np.savez(
        folder / "chain-0" / "state.npz", saved=np.array([0])
    ),
    "a seed that is no number": lambda folder: (folder / "run.json").write_text(
        (folder / "run.json").read_text().replace('"seed": "5"', '"seed": "five"')
    ),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_said_in_one_sentence(damage, message, tmp_path):
    run(checkpoint=tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(ncb.InputError, match=message) as raised:
        run(checkpoint=tmp_path / "run")
    assert_is_one_sentence(raised.value)
    raised = None
    gc.collect()  # np.load leaves a file it can't read open, which is said when it is collected


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("damage", BY_LUCK.values(), ids=BY_LUCK)
def test_a_checkpoint_damaged_otherwise_is_said_in_one_sentence(damage, tmp_path):
    run(checkpoint=tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(ncb.InputError):
        run(checkpoint=tmp_path / "run", seed=None)


def test_what_a_kill_left_half_written_is_removed(tmp_path):
    whole = run(checkpoint=tmp_path / "run")
    left = [tmp_path / "run" / ".writing-a", tmp_path / "run" / "chain-1" / ".writing-state.npz-7"]
    for path in left:
        path.write_bytes(b"half")
    assert_same(run(checkpoint=tmp_path / "run"), whole)
    assert not [path for path in left if path.exists()]


def test_a_refused_run_leaves_the_files_of_the_other_one(tmp_path):
    whole = run(checkpoint=tmp_path / "run")
    with pytest.raises(ncb.InputError):
        run(checkpoint=tmp_path / "run", seed=6)
    assert_same(run(checkpoint=tmp_path / "run"), whole)


def test_a_checkpoint_holds_no_pickles(tmp_path):
    run(checkpoint=tmp_path / "run", noise=ncb.noise.Fresh())
    files = list((tmp_path / "run").rglob("*.npz"))
    assert len(files) == 6
    for file in files:
        with np.load(file, allow_pickle=False) as record:
            assert all(record[name].dtype != object for name in record)
    assert not list((tmp_path / "run").rglob(".writing*"))


class Sharper(ncb.models.VonMises):
    def statistics(self, x):
        return 2 * super().statistics(x)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"data": DATA + 0.01}, "groups of data"),
        ({"draws": 41}, r"draws \(was 40, now 41\)"),
        ({"tune": 11}, r"tune \(was 10, now 11\)"),
        ({"chains": 2}, r"chains \(was 3, now 2\)"),
        ({"seed": 6}, r"seed \(was 5, now 6\)"),
        ({"noise_ratio": 2.0}, r"noise_ratio \(was 1.0, now 2.0\)"),
        ({"noise": ncb.noise.Uniform(MODEL.space)}, "noise points"),
        ({"noise": ncb.noise.Fresh()}, r"schedule \(was Fixed, now Fresh\)"),
        ({"prior": ncb.priors.Normal(2.0)}, "prior of theta"),
        ({"engine": ncb.engines.Gibbs("conjugate_gradients")}, r"engine \(was Joint"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_by_name(change, named, tmp_path):
    run(checkpoint=tmp_path / "run")
    with pytest.raises(ncb.InputError, match=f"holds a run that differs in: .*{named}"):
        run(**{"checkpoint": tmp_path / "run", **change})


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    run(checkpoint=tmp_path / "run")
    with pytest.raises(ncb.InputError, match="statistics of the model"):
        ncb.fit(Sharper(), DATA, noise="matched", draws=40, tune=10, chains=3, seed=5, cores=1,
                checkpoint=tmp_path / "run")  # fmt: skip


def test_a_checkpoint_of_another_layout_is_refused(tmp_path):
    run(checkpoint=tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "layout": 0}))
    with pytest.raises(ncb.InputError, match=r"layout \(was 0, now 1\)"):
        run(checkpoint=tmp_path / "run")


def interrupt_at(sweep):
    """A progress function that presses Ctrl-C once."""
    pressed = threading.Event()

    def press(event):
        if event.sweep >= sweep and not pressed.is_set():
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)

    return press


@pytest.mark.parametrize("cores", [1, 2])
def test_ctrl_c_returns_what_there_is(cores, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    handler = signal.getsignal(signal.SIGINT)
    options = {"draws": 100_000, "tune": 0, "chains": 2, "cores": cores}
    with pytest.warns(ncb.FitWarning, match="the fit was interrupted: . chains? of .* were kept"):
        posterior = run(progress=interrupt_at(300), checkpoint=tmp_path / "run", **options)
    assert signal.getsignal(signal.SIGINT) is handler
    assert not posterior.complete
    assert posterior.data.attrs["complete"] == 0
    kept = posterior.theta.sizes["draw"]
    assert 0 < kept < 100_000
    assert np.all(posterior.theta.to_numpy() != 0)
    same = run(draws=min(kept, 50), tune=0, chains=2).theta.sel(chain=posterior.theta["chain"])
    np.testing.assert_array_equal(posterior.theta[:, : min(kept, 50)], same)


@pytest.mark.parametrize("after", [0.2, 0.5])
def test_ctrl_c_while_processes_start_shows_no_tracebacks(after):
    """A terminal sends the signal to the whole process group, importing workers included."""
    code = (
        "import numpy as np, ncbayes as ncb\n"
        "x = ncb.models.VonMises().sample(np.array([1.0, 0.5]), 60, np.random.default_rng(0))\n"
        "fit = ncb.fit\n"  # what is imported late, before the signal
        "print('ready', flush=True)\n"
        "try:\n"
        "    options = dict(noise='matched', draws=10**7, tune=10**6, cores=2, seed=1)\n"
        "    fit(ncb.models.VonMises(), x, **options)\n"
        "except KeyboardInterrupt as stopped:\n"
        "    print(stopped)\n"
    )
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **streams)
    child.stdout.readline()
    time.sleep(after)
    os.killpg(child.pid, signal.SIGINT)
    shown, _ = child.communicate(timeout=60)
    assert "Traceback" not in shown
    assert "interrupted before the first kept draw" in shown


def test_an_interrupted_fit_can_be_finished(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    with pytest.warns(ncb.FitWarning, match=r"extend\(draws=0\) finishes it"):
        part = run(draws=1000, progress=interrupt_at(100))
    whole = run(draws=1000)
    object.__setattr__(part.run, "progress", False)
    assert_same(part.extend(draws=0), whole)


def test_ctrl_c_before_the_first_draw_is_a_keyboard_interrupt(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    with pytest.raises(KeyboardInterrupt, match="before the first kept draw"):
        run(draws=10, tune=1_000_000, progress=interrupt_at(50))


def test_fits_run_outside_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    assert_same(found[0], run())


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [([5, 5, 5], ([0, 1, 2], 5)), ([9, 2, 8], ([0, 2], 8)), ([3, 0], ([0], 3)), ([0], ([], 0))],
)
def test_the_longest_rectangle(lengths, kept):
    done = [
        Chain(k, checkpoints.ChainState(0, length, None, None, {}, ()), {}, 10)
        for k, length in enumerate(lengths)
    ]
    chosen, count = longest_rectangle(done)
    assert ([chain.index for chain in chosen], count) == kept


def test_progress_events_reach_a_function(monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    events = []
    run(progress=events.append)
    assert {event.chain for event in events} == {0, 1, 2}
    assert events[-1].sweep == events[-1].sweeps == 50
    assert events[-1].seconds > 0


def test_the_rate_of_a_chain_is_that_of_its_own_time():
    clock = progress.Clock()
    seen = [(0, 0.0), (0, 5.0), (100, 6.0), (300, 7.0), (700, 9.0), (700, 20.0)]
    assert [clock.rate(*each) for each in seen] == [0, 0, 0, 200, 200, 200]


def test_a_failing_progress_function_does_not_cost_the_run(monkeypatch):
    with pytest.warns(UserWarning, match=r"progress function failed \(ZeroDivisionError"):
        posterior = run(progress=lambda event: 1 / 0)
    assert_same(posterior, run())


def test_plain_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    run(progress=None)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("ncbayes: sweeps 50/50 50/50 50/50, ")
    assert all(len(line) < 100 for line in lines)


def test_silence(capsys):
    run(progress=False)
    assert capsys.readouterr() == ("", "")


def test_bars_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    run(progress=True)
    shown = capsys.readouterr().err
    for chain in range(3):
        assert f"chain {chain}" in shown
    assert "50/50" in shown


class Locked(ncb.models.VonMises):
    """A model that can't be sent to another process."""

    def __init__(self):
        object.__setattr__(self, "lock", threading.Lock())


def test_what_cannot_be_sent_to_another_process_is_said_in_one_sentence():
    options = {"draws": 8, "tune": 2, "chains": 2, "seed": 1, "progress": False}
    options["noise"] = "matched"
    with pytest.raises(
        ncb.InputError, match=r"can't be sent to another process .* use cores=1$"
    ) as e:
        ncb.fit(Locked(), DATA, cores=2, **options)
    assert_is_one_sentence(e.value)
    assert ncb.fit(Locked(), DATA, cores=1, **options).complete


class Dies:
    """An engine whose process is killed, as by the kernel when memory runs out."""

    def __init__(self):
        self.parent = os.getpid()

    def start(self, target, rng):
        return ncb.engines.Gibbs().start(target, rng)

    def step(self, target, draw, rng):
        if os.getpid() != self.parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return draw


def test_a_killed_worker_is_reported_in_one_sentence():
    with pytest.raises(RuntimeError, match="process of a chain was killed, most often because mem"):
        run(engine=Dies(), cores=2)


@pytest.mark.parametrize("sweeps", [0, 100])
def test_an_orphaned_worker_ends_itself(sweeps, tmp_path):
    """A worker whose parent was killed, before or after it began, must not go on."""
    code = (
        "import os, signal, threading, time, numpy as np, ncbayes as ncb\n"
        "def report(event):\n"
        f"    if event.sweep > {sweeps}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "model = ncb.models.VonMises()\n"
        "x = model.sample(np.array([1.0, 0.5]), 60, np.random.default_rng(0))\n"
        "options = dict(draws=10**7, tune=0, chains=2, cores=2, seed=1, progress=report)\n"
        "ncb.fit(model, x, noise='matched', **options)\n"
    )
    environment = {**os.environ, "NCBAYES_ORPHAN_MARK": str(tmp_path)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False, **quiet)
    mark = f"NCBAYES_ORPHAN_MARK={tmp_path}".encode()
    deadline = time.monotonic() + 20
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [path for path in left if is_busy(path)]


def is_busy(path):
    """Whether a process uses the processor; joblib's idle workers wait a while for new work."""
    before = path.with_name("stat").read_text().split()[13] if path.exists() else None
    time.sleep(1.0)
    return path.exists() and path.with_name("stat").read_text().split()[13] != before


def marked(mark):
    """Processes whose environment holds the mark (Linux only: elsewhere none are seen)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                found.append(path)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_sigkill_at_random_moments(seed):
    """One of the study's trials, of which it does twenty."""
    path = Path(__file__).parents[1] / "studies" / "kill_and_resume.py"
    spec = importlib.util.spec_from_file_location("kill_and_resume", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    saved = chains.SAVE_SECONDS
    try:
        assert module.study(1, seed) == 1
    finally:
        chains.SAVE_SECONDS = saved

"""Kill a running fit with SIGKILL at random moments, resume it, compare with an undisturbed run.

    python studies/kill_and_resume.py [--kills 20] [--seed 1]

Each trial starts a fit in a process of its own (two worker processes, checkpoints every 50 ms),
kills that process at a random moment, repeats the same call here and compares every draw, bit for
bit, with a run that nothing disturbed. A fit that was over before the kill does not count as a
trial. Trials take turns between fixed, fresh and pooled noise.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ncbayes as ncb
from ncbayes import chains

CHILD = """
import sys
sys.path.insert(0, {folder!r})
import kill_and_resume
print("ready", flush=True)
kill_and_resume.run({schedule!r}, {checkpoint!r})
"""
SCHEDULES = {
    "Fixed": ncb.noise.Fixed(),
    "Fresh": ncb.noise.Fresh(),
    "Pooled": ncb.noise.Pooled(sets=3),
}


def run(schedule: str, checkpoint: str | None) -> ncb.Posterior:
    """The fit that is killed: two groups under a random walk, four chains on two cores."""
    chains.SAVE_SECONDS = 0.05
    model, rng = ncb.models.VonMises(), np.random.default_rng(0)
    data = {name: model.sample(np.array([1.0, 0.5]), 100, rng) for name in ("first", "second")}
    return ncb.fit(
        model,
        data,
        noise=SCHEDULES[schedule],
        prior=ncb.priors.RandomWalk(rate=1.0, initial="walk"),
        noise_ratio=2,
        draws=1500,
        tune=300,
        cores=2,
        seed=7,
        checkpoint=checkpoint,
        progress=False,
    )


def killed(schedule: str, checkpoint: Path, after: float) -> int:
    """Start the fit, kill it ``after`` seconds later; the number of sweeps it had saved."""
    code = CHILD.format(
        folder=str(Path(__file__).parent), schedule=schedule, checkpoint=str(checkpoint)
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(after)
    child.kill()
    child.wait()
    child.stdout.close()
    saved = 0
    for file in checkpoint.glob("chain-*/state.npz"):
        with np.load(file) as state:
            saved += int(state["sweep"])
    return saved


def same(one: ncb.Posterior, other: ncb.Posterior) -> bool:
    """Whether all draws and the log likelihoods are equal, bit for bit."""
    pairs = [(one.data["posterior"][k], other.data["posterior"][k]) for k in ("theta", "log_z")]
    pairs.append(
        (one.data["sample_stats"]["log_likelihood"], other.data["sample_stats"]["log_likelihood"])
    )
    return all(np.array_equal(a.to_numpy(), b.to_numpy()) for a, b in pairs)


def study(kills: int, seed: int) -> int:
    """Run the trials and print a line each; the number of identical results."""
    rng = np.random.default_rng(seed)
    reference, seconds = {}, {}
    for name in SCHEDULES:
        began = time.monotonic()
        reference[name] = run(name, None)
        seconds[name] = time.monotonic() - began
    identical = trial = 0
    while trial < kills:
        name = list(SCHEDULES)[trial % len(SCHEDULES)]
        after = rng.uniform(0, seconds["Fixed"])
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            checkpoint = Path(folder) / "run"
            saved = killed(name, checkpoint, after)
            if saved == sum(chain.state.sweep for chain in reference[name].run.chains):
                continue
            equal = same(reference[name], run(name, str(checkpoint)))
        identical += equal
        trial += 1
        print(f"{trial:3d} {name:6s} killed after {after:4.1f} s, {saved:5d} sweeps saved: "
              f"{'identical' if equal else 'DIFFERENT'}", flush=True)  # fmt: skip
    print(f"{identical} of {kills} identical")
    return identical


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(study(arguments.kills, arguments.seed) != arguments.kills)

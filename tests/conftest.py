import os
import sys
from functools import partial
from pathlib import Path

import pytest

import ncbayes


def pytest_configure(config):
    """Forget loops that were compiled before some other file of loops was changed.

    A compiled function holds those of other files that it calls, and numba looks at its own file
    alone: tests would run what the sources say no more.
    """
    if not hasattr(config, "workerinput"):
        forget_stale(Path(ncbayes.__file__).parent)


def forget_stale(package: Path) -> None:
    loops = [path for path in package.rglob("*.py") if "njit" in path.read_text(encoding="utf-8")]
    changed = max((path.stat().st_mtime for path in loops), default=0.0)
    for index in package.rglob("__pycache__/*.nbi"):
        if index.stat().st_mtime < changed:
            index.unlink(missing_ok=True)


@pytest.fixture
def seed() -> int:
    """Any seed must do: sweep them with NCBAYES_TEST_SEED=2, 3, ..."""
    return int(os.environ.get("NCBAYES_TEST_SEED", "1"))


class Killed(Exception):
    """In the place of a signal."""


@pytest.fixture
def killed(monkeypatch):
    """``killed(run, moment)``: a run that dies when it writes its ``moment``-th file."""

    def die(run, moment):
        calls, replace = [], os.replace

        def fail(source, target):
            calls.append(1)
            if len(calls) == moment:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", fail)
            with pytest.raises(Killed):
                run()

    return die


@pytest.fixture(autouse=True)
def _short_checks(monkeypatch):
    """Fewer rounds of checks of engines, enough for every broken twin of ours.

    NCBAYES_TEST_FULL=1 runs them as users do.
    """
    if "NCBAYES_TEST_FULL" not in os.environ:
        from ncbayes import testing

        monkeypatch.setattr(testing, "ENGINE_LOOKS", {400: 0.2, 1200: 0.8})


@pytest.fixture
def resumed(tmp_path, monkeypatch, killed):
    """What ``run(checkpoint=folder)`` returns after it was broken off, for each of the moments.

    A moment is which of its files, counted from 1, the run was about to put in place. There is one
    after every sweep.
    """
    from ncbayes import chains

    def each(run, moments):
        monkeypatch.setattr(chains, "SAVE_SECONDS", 0.0)
        monkeypatch.setattr(chains, "BLOCK_SECONDS", 0.0)
        for moment in moments:
            folder = tmp_path / str(moment)
            killed(partial(run, checkpoint=folder), moment)
            yield run(checkpoint=folder)

    return each


@pytest.fixture(autouse=True)
def single_precision_again():
    """JAX's precision is global: what NumPyro turned on for one test is off for the next."""
    yield
    if "numpyro" in sys.modules:
        sys.modules["numpyro"].enable_x64(False)

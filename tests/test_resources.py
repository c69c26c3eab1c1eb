"""Memory and processes, known before anything is allocated."""

import os
import tracemalloc
import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import models, posterior, resources
from ncbayes.base import Segment
from ncbayes.resources import Size, affordable_processes, is_affordable, worthwhile_processes

X = np.random.default_rng(0).normal(size=(20, 1))
GB = 1_000_000_000


def fit(model=None, data=X, **options):
    few = {"draws": 8, "tune": 2, "chains": 1, "cores": 1, "seed": 1, "progress": False}
    few |= {"noise": "matched", "noise_ratio": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model or models.Gaussian(1), data, **{**few, **options})


class Never:
    """A model that must not be evaluated."""

    space = ncb.spaces.Reals(1)
    groups = {"all": ("x",)}  # noqa: RUF012

    def statistics(self, x):
        raise AssertionError("statistics were computed before the memory was checked")

    def log_base(self, x):
        raise AssertionError("log_base was computed before the memory was checked")


class Needs(Size):
    """A size whose needs are given, in GB."""

    def __new__(cls, each, together):
        made = super().__new__(cls)
        made.__dict__["needs"] = (each * GB, together * GB)
        return made

    def __init__(self, each, together):
        pass

    def needed_bytes(self, draws, chains):
        return self.needs


@pytest.mark.parametrize(
    ("each", "together", "available", "cores", "expected"),
    [
        (2, 0, 10, None, 4),
        (2, 0, 5, None, 2),
        (2, 0, 8, 4, 4),
        (2, 0, 8, 3, 3),
        (2, 3, 5, None, 1),
        (0, 0, 1, 3, 3),
        (0, 0, 1, 9, 4),
    ],
)
def test_no_more_processes_than_memory(each, together, available, cores, expected, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(resources, "available_bytes", lambda: available * GB)
    assert affordable_processes(Needs(each, together), 10, 4, cores) == expected


@pytest.mark.parametrize(
    ("each", "together", "available", "cores", "expected"),
    [
        (4, 0, 5, None, True),
        (4.1, 0, 5, None, False),
        (3, 1, 5, None, True),
        (4, 1, 5, None, False),
        (4, 0, 10, 2, True),
        (4, 0, 9.9, 2, False),
        (1, 0, 5, 9, True),
    ],
)
def test_choices_leave_a_fifth_of_the_memory(
    each, together, available, cores, expected, monkeypatch
):
    monkeypatch.setattr(resources, "available_bytes", lambda: available * GB)
    assert is_affordable(Needs(each, together), 10, 4, cores) is expected


def test_no_more_processes_than_processors(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert affordable_processes(Needs(0, 0), 10, 4, None) == 2
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert affordable_processes(Needs(0, 0), 10, 4, None) == 1


@pytest.mark.parametrize(
    ("each", "together", "cores", "need"),
    [(6, 0, None, 6), (1, 5, None, 6), (2, 0, 4, 8), (1, 2, 4, 6), (2, 0, 9, 8)],
)
def test_too_little_memory_is_said_with_the_number(each, together, cores, need, monkeypatch):
    monkeypatch.setattr(resources, "available_bytes", lambda: 5.5 * GB)
    with pytest.raises(
        ncb.InputError,
        match=rf"^this fit needs about {need} GB of memory and 5.5 GB are available; lower noise_r",
    ):
        affordable_processes(Needs(each, together), 10, 4, cores)


def test_the_memory_of_the_machine_is_asked_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(resources, "available_bytes", lambda: 1000.0)
    for cores in (1, None):
        with pytest.raises(ncb.InputError, match=r"needs about .* GB of memory and 1e-06 GB are"):
            fit(Never(), cores=cores)


def test_fewer_processes_are_used_where_memory_is_short(monkeypatch):
    each, together = Size((40,), 2, 1, False).needed_bytes(8, 2)
    monkeypatch.setattr(resources, "available_bytes", lambda: 1.5 * each + together)
    assert fit(chains=2, cores=None).complete
    with pytest.raises(ncb.InputError, match="GB of memory"):
        fit(chains=2, cores=2)


def test_needed_memory_grows_with_what_is_asked_for():
    def needed(rows=(2000,), statistics=2, structured=False, draws=100, chains=2):
        return Size(rows, statistics, 1, structured).needed_bytes(draws, chains)

    each, together = needed()
    looked = Size((2000,), 2, 1, False)._looked_at()
    assert together == 3 * 2 * 100 * 3 * 8
    assert needed(rows=(3000,))[0] > each
    assert needed(rows=(2000, 2000))[0] - looked > 1.6 * (each - looked)
    assert needed(draws=200)[0] > each
    assert needed(chains=4) == (each, 2 * together)
    assert needed(statistics=10_000)[0] > 3 * 8 * 2000 * 10_000
    assert needed(statistics=10_000, structured=True)[0] < 3 * 8 * 2000 * 10_000


@pytest.mark.parametrize(
    ("rows", "dimension"),
    [(40_000, 1), (2000, 20)],
)
def test_predicted_memory_covers_a_real_fit(rows, dimension):
    data = np.random.default_rng(0).normal(size=(rows, dimension))
    statistics = dimension + dimension * (dimension + 1) // 2
    predicted = sum(Size((2 * rows,), statistics, dimension, False).needed_bytes(8, 1))
    fit()  # imports and caches are not the fit's
    tracemalloc.start()
    fit(models.Gaussian(dimension), data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < predicted < 3 * peak


def test_available_memory_is_a_sane_number():
    assert 1e6 < resources.available_bytes() < 1e15


def test_short_runs_stay_in_one_process(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    run = fit(chains=2).run
    target = run.problem.target(run.problem.source.fixed(0))
    short, long = (Segment(0, 2, 8),), (Segment(0, 2, 10**7),)
    assert worthwhile_processes(run.size, target, short, 2, None) == 1
    assert worthwhile_processes(run.size, target, long, 2, None) == 2
    assert worthwhile_processes(run.size, target, short, 2, 2) == 2


def test_a_fit_that_is_extended_counts_its_processes_anew(monkeypatch):
    """One process for a short fit must not mean one for a long extension."""
    seen = []

    def observed(size, target, plan, chains, cores):
        seen.append((sum(segment.draws for segment in plan), chains, cores))
        return 1 if len(seen) == 1 else 2

    used = []
    run = posterior.chains_module.run
    monkeypatch.setattr(posterior, "worthwhile_processes", observed)
    monkeypatch.setattr(
        posterior.chains_module,
        "run",
        lambda *args, **kwargs: used.append(kwargs["cores"]) or run(*args, **kwargs),
    )
    first = fit(chains=2, cores=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        longer = first.extend(12)
    assert seen == [(8, 2, None), (20, 2, None)]
    assert used == [1, 2]
    np.testing.assert_array_equal(longer.theta, fit(chains=2, draws=20).theta)


def test_an_extension_that_no_memory_holds_is_refused():
    with pytest.raises(ncb.InputError, match=r"^this fit needs about [\d.]+e\+\d+ GB of memory"):
        fit().extend(10**12)

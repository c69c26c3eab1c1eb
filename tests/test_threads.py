"""One BLAS thread in the block, and what was before after it, whoever else is in there."""

import os
import threading

import numpy as np
import pytest
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

import ncbayes as ncb
from ncbayes.threads import single_threaded, single_threaded_children

if not [each for each in threadpool_info() if each["user_api"] == "blas"]:
    pytest.skip("no BLAS whose threads can be counted", allow_module_level=True)


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def set_threads(count):
    """Set the number of threads and leave the right to do so, which threadpoolctl 3.8 gives to
    the first thread that asks, to whoever comes next."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release:
        release(force=True)
    threadpool_limits(count)
    if release:
        release(force=True)


@pytest.fixture(autouse=True)
def two_threads():
    """Whatever the environment says, the tests begin with two."""
    before = max(blas_threads())
    set_threads(2)
    assert set(blas_threads()) == {2}
    yield
    set_threads(before)


def test_one_thread_in_the_block():
    with single_threaded():
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_nested_blocks_restore_what_was_before_the_first():
    with single_threaded():
        with single_threaded():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}
    with single_threaded():
        assert set(blas_threads()) == {1}


def test_errors_restore_what_was_before():
    with pytest.raises(ZeroDivisionError), single_threaded():
        1 / 0  # noqa: B018
    assert set(blas_threads()) == {2}


STAYS = "threadpoolctl 3.8 heeds only the thread that set a limit first, while it lives"


def test_overlapping_blocks_of_two_threads_restore_what_was_before_the_first():
    """The one that came first leaves first: a plain limit would then leave one thread for good."""
    inside, leave, left, end = (threading.Event() for _ in range(4))
    seen = []

    def first():
        with single_threaded():
            inside.set()
            leave.wait(10)
        left.set()
        end.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with single_threaded():
        leave.set()
        assert left.wait(10)
        seen.append(set(blas_threads()))
    seen.append(set(blas_threads()))
    end.set()
    thread.join()
    assert seen == [{1}, {2}]


def test_plain_limits_that_overlap_do_not_restore():
    """The broken twin: without the count, the second one in restores the first one's limit."""
    first, second = threadpool_limits(1), threadpool_limits(1)
    first.restore_original_limits()
    second.restore_original_limits()
    assert set(blas_threads()) == {1}


def test_a_thread_may_come_after_the_main_thread():
    """The right to set the number of threads must not stay with the one that came first."""
    with single_threaded():
        pass
    seen = []

    def later():
        with single_threaded():
            seen.append(set(blas_threads()))

    thread = threading.Thread(target=later)
    thread.start()
    thread.join()
    assert seen == [{1}]
    assert set(blas_threads()) == {2}


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_fits_in_several_threads_at_once_give_the_same_draws():
    data = np.random.default_rng(0).normal(size=(50, 1))
    found = {}

    def fit(k):
        found[k] = ncb.fit(ncb.models.Gaussian(1), data, draws=50 * (k + 1), tune=10, chains=1,
                           cores=1, noise="matched", seed=1, progress=False)  # fmt: skip

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found[2].theta[:, :50], found[0].theta)


def seen():
    return os.environ.get("NPROC")


def test_processes_started_in_the_block_have_one_thread_of_jax(monkeypatch):
    from joblib.externals.loky import ProcessPoolExecutor

    monkeypatch.delenv("NPROC", raising=False)
    with single_threaded_children(), ProcessPoolExecutor(1) as pool:
        assert pool.submit(seen).result() == "1"
    assert "NPROC" not in os.environ
    monkeypatch.setenv("NPROC", "3")
    with single_threaded_children():
        assert os.environ["NPROC"] == "3"
    assert os.environ["NPROC"] == "3"

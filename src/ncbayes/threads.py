"""One BLAS thread while chains run: faster for small matrices, and the same bits everywhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """BLAS uses one thread in this block.

    The limit is one of the whole process, so fits in several threads share it: the first one in
    sets it, the last one out restores what was before.
    """
    global _users, _limit
    from threadpoolctl import threadpool_limits

    with _lock:
        _users += 1
        if _users == 1:
            _let_any_thread_set_limits()
            _limit = threadpool_limits(1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _let_any_thread_set_limits()
                _limit.restore_original_limits()
                _let_any_thread_set_limits()


@contextmanager
def single_threaded_children() -> Iterator[None]:
    """JAX will use one thread in processes that are started in this block.

    It reads the variable NPROC when it first computes; one that the user has set is left alone.
    """
    if "NPROC" in os.environ:
        yield
        return
    os.environ["NPROC"] = "1"
    try:
        yield
    finally:
        os.environ.pop("NPROC", None)


def _let_any_thread_set_limits() -> None:
    """threadpoolctl 3.8 heeds only the first thread that set a limit, until told otherwise."""
    import threadpoolctl

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(controller, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)

"""JAX where it is needed: asked for when used, in double precision and on one thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ncbayes.base import InputError

INSTALL = 'pip install "ncbayes[energy]"'
# One thread: faster for small arrays, and the same bits whatever the number of cores.
ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}


def jax_module(asker: str) -> Any:
    """The package jax, or an InputError that says how to install it."""
    try:
        import jax
    except ImportError as missing:
        raise InputError(
            f"{asker} needs the package jax, which is not installed: {INSTALL}"
        ) from missing
    return jax


def blackjax_module(asker: str) -> Any:
    """The package blackjax, or an InputError that says how to install it."""
    jax_module(asker)
    try:
        import blackjax
    except ImportError as missing:
        raise InputError(
            f"{asker} needs the package blackjax, which is not installed: {INSTALL}"
        ) from missing
    return blackjax


@contextmanager
def double_precision() -> Iterator[None]:
    """JAX computes in 64 bits in this block and thread, if it is in use at all.

    The user's own setting comes back after it.
    """
    jax = sys.modules.get("jax")
    if jax is None:
        yield
        return
    if hasattr(jax, "enable_x64"):
        block: Any = jax.enable_x64(True)
    else:  # before JAX 0.8
        from jax import experimental

        block = experimental.enable_x64(True)  # type: ignore[attr-defined, unused-ignore]
    with block:
        yield

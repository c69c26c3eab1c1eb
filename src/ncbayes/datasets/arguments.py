"""What the functions of this namespace take: numbers, switches and seeds, in the user's words."""

from __future__ import annotations

import math
import numbers
from typing import Any, TypeAlias

import numpy as np

from ncbayes.base import InputError, shown
from ncbayes.spaces import is_whole

Seed: TypeAlias = int | np.random.Generator | None


def generator(name: str, seed: Any) -> np.random.Generator:
    """The random source that a seed stands for."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if not is_whole(seed) or seed < 0:
        raise InputError(
            f"{name} must be a whole number, 0 or more, or a generator such as "
            f"np.random.default_rng(1), got {shown(seed)}"
        )
    return np.random.default_rng(int(seed))


def check_count(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {shown(value)}")


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {shown(value)}")


def is_finite_number(value: Any) -> bool:
    """Whether the value is one real number, neither infinite nor missing."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and math.isfinite(value)

"""Numbers on their way into the page: typed arrays as base64, and plain ones for JSON."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

# What the page's script can read, and the names it knows them by.
TYPES = ("u1", "u2", "i2", "u4", "f4")


def packed(values: Any, kind: str) -> dict[str, str]:
    """An array, flat and little-endian, as the script's ``unpacked`` reads it."""
    assert kind in TYPES
    raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(raw).decode("ascii")}


def plain(value: Any, digits: int = 6) -> float | None:
    """A number to so many significant digits; JSON has none for what is not finite."""
    number = float(value)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


def whole(values: Any, decimals: int, kind: str) -> dict[str, str]:
    """Numbers rounded to so many decimals, kept as whole numbers of the last one.

    What the page shows is then what rounding gives, and two bytes are enough.
    """
    return packed(np.rint(np.asarray(values) * 10.0**decimals), kind)


def decimals_of(highest: float, most: int = 65_000) -> int:
    """How many decimals numbers up to ``highest`` can have to be below ``most`` in whole ones.

    Negative for very high ones, whose last digits are then left out.
    """
    if not (math.isfinite(highest) and highest > 0):
        return 0
    return math.floor(math.log10(most / highest))

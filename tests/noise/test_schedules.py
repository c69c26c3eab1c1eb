"""What Pooled refuses; what it does is tested with the chains."""

import re

import numpy as np
import pytest

from ncbayes.base import InputError, Segment, shown
from ncbayes.noise import Pooled


@pytest.mark.parametrize("value", ["8", 2.5, 2.0, True, None, 1, 0, -3, [8]])
def test_pooled_needs_a_whole_number_of_sets(value):
    with pytest.raises(
        InputError,
        match=r"^Pooled\(sets=...\) must be a whole number, at least 2, got "
        + re.escape(f"{shown(value)}; for one set use Fixed()"),
    ):
        Pooled(sets=value)


@pytest.mark.parametrize("value", ["1", 1.5, 1.0, True, -1, [1]])
def test_pooled_settles_for_a_whole_number_of_sweeps(value):
    with pytest.raises(
        InputError,
        match=r"^Pooled\(settle=...\) must be a whole number of sweeps and must not be negative, "
        + re.escape(f"got {shown(value)}; leave it out for a fifth of tune"),
    ):
        Pooled(settle=value)


def test_pooled_takes_numbers_of_numpy():
    plan = Pooled(sets=np.int64(2), settle=np.int32(0)).plan(5, 10)
    assert plan == (Segment(0, 10, 3), Segment(1, 0, 2))

"""What the coordinates of joint trajectories are made of: arrays for ``linalg.whitening``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Chart(NamedTuple):
    """The map from a position to coef, and the prior in its coordinates.

    Parts: ``start``, ``width``: their columns of coef; ``rows`` of y, which begin at ``begin`` of
    its flat array; ``mixes`` (part, group, row). ``level``: the row whose prior is of
    ``y_level - sum_r shears_r y_r``, -1 without one.
    Cells: ``cell`` is where in y they begin, ``size`` their length, ``turn`` where in ``turns``
    their V begins, -1 for the identity; ``first``, ``second``: their scales, -1 for none;
    ``fictitious``: the slab stands outside the normalizer; ``owner``: the part whose level
    the cell is of, else -1.
    Parts whose columns are linked, by a covariance: ``links`` is where in zeta their phi begin, -1
    without any, ``variances`` where their log scales do, ``first_cell`` their first cell, and
    ``matrices`` the inverse Wishart's scale matrix.
    """

    start: Ints
    width: Ints
    rows: Ints
    begin: Ints
    mixes: Floats
    level: Ints
    shears: Floats
    cell: Ints
    size: Ints
    slab: Floats
    first: Ints
    second: Ints
    factor: Floats
    fictitious: NDArray[np.bool_]
    owner: Ints
    mean: Floats
    kinds: Ints
    prior_a: Floats
    prior_b: Floats
    free: Ints
    tied: Ints
    free_precision: Floats
    free_shift: Floats
    turn: Ints
    links: Ints
    variances: Ints
    first_cell: Ints
    matrices: Floats
    # What warm-up learns; basis_turns takes rows of y to those of the prior.
    basis_turns: Floats
    turns: Floats
    g: Floats
    rho: Floats
    free_mean: Floats
    free_factor: Floats
    shear: Floats

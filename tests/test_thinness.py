"""Data on sets without volume are refused or told; rounded measurements never are."""

import numpy as np
import pandas as pd
import pytest

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.spaces import Binary, Box, Counts, Orthant, Reals, Torus
from ncbayes.thinness import thin_lines

RNG = np.random.default_rng(3)
SHARES = RNG.dirichlet([1, 2, 3], 200)
VECTORS = RNG.normal([2.0, 0.0, 0.0], 1.0, (200, 3))
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
PATCHES = RNG.standard_normal((200, 9))
TURNS = RNG.uniform(0, 6, (60, 2))


def lines(space, x, columns=()):
    return thin_lines(space, {"all": np.asarray(x, dtype=float)}, columns)


REFUSED = {
    "shares": (Orthant(3), SHARES, "^columns 0, 1, 2 sum to 1 in every row: .*such as 2, "),
    "in single precision": (Orthant(3), SHARES.astype(np.float32), "sum to 1 in every row"),
    "patches": (Reals(9), PATCHES - PATCHES.mean(axis=1, keepdims=True), "and 3 more sum to 0 in"),
    "a total": (
        Reals(4),
        np.column_stack([VECTORS, VECTORS[:, 0] - 2 * VECTORS[:, 2] + 5]),
        r"^column 3 is a linear combination of others \(among columns 0, 2, 3\)",
    ),
    "unit vectors": (Reals(3), UNIT, "^all rows have length 1: .* by 2 numbers"),
    "on a circle": (Reals(2), 3 * UNIT[:, :2] / np.linalg.norm(UNIT[:, :2], axis=1)[:, None],
                    "length 3: .*arctan2"),
    "the same angle": (Torus(3), np.column_stack([TURNS, (TURNS[:, 1] + 1) % 6.283185307179586]),
                       "^column 2 minus column 1 is the same angle"),
    "a mirrored angle": (Torus(3), np.column_stack([TURNS, -TURNS[:, 0] % 6.283185307179586]),
                         "^column 2 plus column 0 is the same angle"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_rows_on_a_thin_set_are_refused(name):
    space, x, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        lines(space, x)
    # The twin: as little as a tenth of the spread across the set makes it a fat one.
    x = x + 0.1 * np.abs(RNG.standard_normal(x.shape))
    x = x % (2 * np.pi) if isinstance(space, Torus) else x
    assert lines(space, x) == []


def with_zeros(share, rows=200):
    x = RNG.gamma(2.0, size=(rows, 2))
    x[: int(share * rows), 1] = 0.0
    return x


TOLD = {
    "a fifth at one value": (Orthant(2), with_zeros(0.2), "20 % have 0 in column 1"),
    "of few rows": (Orthant(2), with_zeros(0.2, 60), "20 % have 0 in column 1"),
    "both ends": (
        Box((0, 0), (1, 1)),
        np.clip(RNG.normal(0.5, 0.5, (300, 2)), 0, 1),
        "in column 1",
    ),
    "calm winds": (
        Torus(1),
        np.where(RNG.random((300, 1)) < 0.3, 0.0, RNG.integers(0, 36, (300, 1)) * np.pi / 18),
        "have 0 in column 0",
    ),
    "zeros and ones": (
        Reals(2),
        np.column_stack([TURNS[:, 0], TURNS[:, 1] > 3]),
        "at most 3 values in 60 rows occur in column 1",
    ),
    "rounded shares": (Orthant(3), SHARES.round(3), "rows nearly sum to 1 "),
    "rounded unit vectors": (Reals(3), UNIT.round(3), "rows nearly have one length, 1:"),
    "a column twice, rounded": (
        Reals(2),
        np.column_stack([VECTORS[:, 0], VECTORS[:, 0].round(3) * 4]),
        "a combination of the columns is nearly constant",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_nearly_thin_is_told(name):
    space, x, part = TOLD[name]
    assert part in "\n".join(lines(space, x))


FINE = {
    "far from zero": (Reals(3), 1000 + 0.01 * VECTORS),
    "strongly correlated": (Reals(2), VECTORS[:, :1] + 0.02 * VECTORS[:, 1:]),
    "fewer rows than columns need": (Reals(9), PATCHES[:15] - PATCHES[:15].mean(1)[:, None]),
    "tens of degrees": (Torus(2), RNG.integers(0, 36, (300, 2)) * np.pi / 18),
    "tenths": (Reals(3), (4 * VECTORS).round(1)),
    "whole numbers": (Orthant(3), RNG.poisson(2.0, (500, 3))),
    "a constant column": (Reals(3), np.column_stack([VECTORS[:, :2], np.ones(200)])),
    "binary": (Binary(2), RNG.integers(0, 2, (50, 2))),
    "counts": (Counts(2), np.zeros((50, 2))),
}


@pytest.mark.parametrize("name", FINE)
def test_nothing_is_said_of_ordinary_data(name):
    assert lines(*FINE[name]) == []


def test_rounding_alone_is_no_atom():
    for step in (0.05, 0.2, 0.5, 1.0):
        for rows in (30, 100, 1000):
            x = np.random.default_rng(rows).standard_normal((rows, 40))
            assert not any(
                "share one value" in each for each in lines(Reals(40), step * (x // step))
            )


def test_fit_refuses_by_the_columns_names_and_in_the_group():
    frame = pd.DataFrame(SHARES, columns=["sand", "silt", "clay"])
    model = ncb.models.TruncatedGaussian(3)
    with pytest.raises(InputError, match=r"^columns 'sand', 'silt', 'clay' sum to 1 in every row"):
        ncb.fit(model, frame)
    both = {"a": np.abs(VECTORS), "b": SHARES}
    with pytest.raises(InputError, match=r"^in group 'b': columns 0, 1, 2 sum to 1"):
        ncb.fit(model, both)


@pytest.mark.filterwarnings("ignore:fewer than")
@pytest.mark.filterwarnings("ignore:R-hat", "ignore:theta . statistics")
def test_atoms_are_told_at_the_door_and_in_the_file(tmp_path):
    frame = pd.DataFrame(with_zeros(0.2), columns=["rain", "snow"])
    options = {"noise": "matched", "draws": 20, "tune": 10, "chains": 1, "progress": False}
    with pytest.warns(ncb.FitWarning) as caught:
        posterior = ncb.fit(ncb.models.TruncatedGaussian(2), frame, seed=1, **options)
    assert "20 % have 0 in column 'snow'" in str(caught[0].message)
    posterior.save(tmp_path / "atoms.nc")
    kept = ncb.load(tmp_path / "atoms.nc").warning_lines()
    assert sum("share one value exactly" in line for line in kept) == 1


def test_positive_numbers_over_many_orders_of_magnitude_lost_no_decimal_point():
    data = np.random.default_rng(1).gamma(0.08, 1.0, (300, 1))
    # Some values are what in a column of any sign would be named.
    far = np.abs(data - np.median(data)) > 100 * np.ptp(np.quantile(data, [0.25, 0.75]))
    assert 0 < far.mean() < 0.1
    assert thin_lines(Orthant(1), {"all": data}) == []
    data[7] = 1e30
    (line,) = thin_lines(Orthant(1), {"all": data})
    assert "in row 7 (1e+30)" in line


def test_values_that_lost_a_decimal_point_are_named_with_their_rows():
    rows = np.random.default_rng(1).gamma(3.0, 1.0, (200, 2))
    space = ncb.spaces.Orthant(2)
    assert thin_lines(space, {"all": rows}, ["acid", "salt"]) == []
    broken = rows.copy()
    broken[[3, 50], 1] *= 1000
    (line,) = thin_lines(space, {"all": broken}, ["acid", "salt"])
    assert line.startswith("column 'salt' has values more than 100 times as far from its median")
    assert "in rows 3 (" in line
    assert ", 50 (" in line
    heavy = np.random.default_rng(1).standard_t(2.5, (1000, 1))
    assert thin_lines(ncb.spaces.Reals(1), {"all": heavy}) == []

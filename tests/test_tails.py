"""Models that can't be normalized are told; those with heavy tails that can are not."""

import jax.numpy as jnp
import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.energies import Energy, Positive
from ncbayes.spaces import Orthant, Reals
from ncbayes.tails import changes, tail_concern

OBLIQUE = np.array([[0.6, -0.8, 0.0], [0.48, 0.36, 0.8]])

TURN = np.linalg.qr(np.random.default_rng(5).standard_normal((5, 5)))[0]


def squares(x):
    return (x**2).sum(axis=1)


def rows(d, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((200, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))


# The space, log p, and whether its integral exists.
REALS = {
    "normal": (3, lambda x: -squares(x) / 2, True),
    "Cauchy": (3, lambda x: -2.0 * np.log1p(squares(x)), True),
    "Student t, 0.2 degrees": (3, lambda x: -1.6 * np.log1p(squares(x)), True),
    # Along an axis these fall slower than r^-d, in all other directions faster.
    "independent Cauchys": (5, lambda x: -np.log1p(x**2).sum(axis=1), True),
    "independent t, 0.2 degrees": (5, lambda x: -0.6 * np.log1p(x**2).sum(axis=1), True),
    "independent t, turned": (5, lambda x: -0.6 * np.log1p((x @ TURN) ** 2).sum(axis=1), True),
    "hyperbolic": (2, lambda x: -np.sqrt(1 + x**2).sum(axis=1), True),
    "overflows to minus infinity": (2, lambda x: -np.exp(x**2).sum(axis=1), True),
    "no number at 1000": (2, lambda x: np.where(np.abs(x).max(1) > 500, np.nan, -squares(x)), True),
    "one dimension": (1, lambda x: -np.log1p(x[:, 0] ** 2), True),
    "saturates": (2, lambda x: -3 * np.tanh(squares(x)), False),
    "falls like r^-d": (3, lambda x: -1.5 * np.log1p(squares(x)), False),
    "constant down one column": (2, lambda x: -(np.maximum(x[:, 0], 0) ** 2) - x[:, 1] ** 2, False),
    "ignores a column": (3, lambda x: -squares(x[:, 1:]), False),
    "ignores an oblique line": (3, lambda x: -squares(x @ OBLIQUE.T), False),
    "ignores an oblique plane": (3, lambda x: -((x @ OBLIQUE[0]) ** 2), False),
    "too slow in a plane": (
        3,
        lambda x: -(x[:, 0] ** 2) - 0.8 * np.log1p(squares(x[:, 1:])),
        False,
    ),
    "grows to infinity": (1, lambda x: np.exp(x[:, 0] ** 2), False),
}
POSITIVE = {
    "gamma": (lambda x: np.log(x + 1e-300).sum(axis=1) - x.sum(axis=1), True),
    "indefinite but copositive": (lambda x: -squares(x) - 4 * x[:, 0] * x[:, 1], True),
    "grows where both do": (lambda x: -squares(x) + 3 * x[:, 0] * x[:, 1], False),
    "power of a half-line": (lambda x: -0.9 * np.log1p(x[:, 0]) - x[:, 1], False),
}


def concern(log_density, data, space):
    return tail_concern(lambda _, x: log_density(x), np.zeros((9, 1)), data, space, "log p")


@pytest.mark.parametrize("name", REALS)
def test_reals(name, seed):
    d, log_density, exists = REALS[name]
    assert (concern(log_density, rows(d, seed), Reals(d)) is None) == exists


@pytest.mark.parametrize("name", POSITIVE)
def test_positive_numbers(name, seed):
    log_density, exists = POSITIVE[name]
    assert (concern(log_density, np.abs(rows(2, seed)), Orthant(2)) is None) == exists


def test_the_line_says_where_and_by_how_much():
    line = concern(lambda x: -(x[:, 0] ** 2), rows(2), Reals(2))
    assert line.startswith("log p can't be normalized at all draws looked at: far out ")
    assert "column 1 it changes by " in line
    assert "and must fall by 2.3; log_z means nothing there" in line
    assert len(line) < 300
    some = tail_concern(
        lambda draw, x: -draw[0] * squares(x), np.array([[1.0], [1.0], [-1.0]]), rows(2), Reals(2),
        "log p",
    )  # fmt: skip
    assert "at 1 of 3 draws" in some


def test_what_was_not_seen_is_said():
    def fails(x):
        raise ValueError

    for unknown in (lambda x: np.full(len(x), np.nan), fails):
        line = concern(unknown, rows(2), Reals(2))
        assert "not a number at 10 and 100 times" in line
        assert "was not seen" in line


def test_changes_over_the_last_decade_that_is_known():
    inf, nan = np.inf, np.nan
    levels = [[0, 1, 3], [0, 1, nan], [0, -inf, -inf], [0, 1, inf], [nan, nan, 1], [0, -inf, 2]]
    assert changes(np.array(levels)) == pytest.approx([2, 1, -inf, inf, nan, inf], nan_ok=True)


def saturating(params, x):
    return -params["a"] * jnp.tanh((x**2).sum(axis=1))


@pytest.mark.filterwarnings("ignore:fewer than")
@pytest.mark.filterwarnings("ignore:R-hat")
def test_an_energy_without_an_integral_is_told_also_from_a_file(tmp_path):
    energy = Energy(saturating, {"a": Positive()}, Reals(2))
    options = {"draws": 30, "tune": 40, "chains": 1, "seed": 1, "progress": False}
    with pytest.warns(ncb.FitWarning) as caught:
        posterior = ncb.fit(energy, rows(2), **options)
    posterior.save(tmp_path / "energy.nc")
    lines = ncb.load(tmp_path / "energy.nc").warning_lines()
    assert [str(each.message) for each in caught] == lines
    assert any("log_density can't be normalized at all draws" in line for line in lines)
    assert sum("can't be normalized" in line for line in lines) == 1


class Saturating:
    """A family on the line whose tails are constant; with the square they are not."""

    space, groups = Reals(1), {"all": ["tanh", "square"]}

    def __init__(self, falls):
        self.falls = falls

    def statistics(self, x):
        return np.hstack([np.tanh(x), -(x**2) if self.falls else np.exp(-(x**2))])

    def log_base(self, x):
        return np.zeros(len(x))


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("falls", [True, False])
def test_a_family_of_the_users_own(falls):
    options = {"draws": 60, "tune": 40, "chains": 1, "seed": 1, "progress": False}
    data = {"few": rows(1)[:60], "many": rows(1)}
    posterior = ncb.fit(Saturating(falls), data, noise="matched", **options)
    lines = [line for line in posterior.warning_lines() if "can't be normalized" in line]
    assert len(lines) == (0 if falls else 2)
    if not falls:
        assert lines[0].startswith("in group few: theta . statistics + log_base can't be")

import numpy as np
import pytest
from scipy.special import expit

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.noise import CrossFitted, Gamma, Normal, StudentT, Uniform, matched
from ncbayes.problem import noise_set
from ncbayes.spaces import Binary, Box, Orthant, Reals

ROWS = np.random.default_rng(3).standard_normal((37, 3))


def profile_log_z(kernel, noise, rows):
    """-c at a known theta: the root of ``sum expit(kernel - log q + log n/m + c) = n``."""
    points = np.concatenate([rows, noise.points])
    log_q = np.concatenate([noise.log_density_at_data, noise.log_density])
    psi = kernel(points) - log_q + np.log(len(rows) / len(noise.points))
    c = 0.0
    for _ in range(50):
        p = expit(psi + c)
        c += np.clip((len(rows) - p.sum()) / (p * (1 - p)).sum(), -2, 2)
    return -c


def test_no_part_has_seen_the_rows_that_it_judges():
    seen = []

    def fitter(rows):
        seen.append(np.array(rows))
        return StudentT.match(rows)

    found = CrossFitted.match(fitter, ROWS)
    assert len(seen) == 11  # all rows, then ten parts
    for rows, part, _ in found.folds(ROWS, 100):
        used = next(each for each, made in zip(seen[1:], found.parts, strict=True) if made is part)
        left_out = {tuple(row) for row in ROWS[rows]}
        assert not left_out & {tuple(row) for row in used}
        assert len(used) + len(left_out) == len(ROWS)


def test_folds_hold_every_row_once_and_all_the_noise():
    found = CrossFitted.match(StudentT.match, ROWS)
    folds = found.folds(ROWS, 101)
    assert sorted(np.concatenate([rows for rows, *_ in folds])) == list(range(37))
    assert sum(count for *_, count in folds) == 101
    assert min(count for *_, count in folds) >= 1


def test_a_noise_set_is_one_contrast_a_fold():
    found = CrossFitted.match(Normal.match, ROWS)
    made = noise_set(found, ROWS, 101, np.random.default_rng(1))
    rng, start = np.random.default_rng(1), 0
    for rows, part, count in found.folds(ROWS, 101):
        points = part.sample(count, rng)
        assert np.array_equal(made.points[start : start + count], points)
        # With these, log q - log n + log m is that of the fold's own n and m.
        shift = np.log(count / len(rows)) - np.log(101 / 37)
        assert np.allclose(
            made.log_density[start : start + count], part.log_density(points) + shift
        )
        assert np.allclose(made.log_density_at_data[rows], part.log_density(ROWS[rows]) + shift)
        start += count


def test_others_see_the_noise_of_all_rows():
    found, whole = CrossFitted.match(StudentT.match, ROWS), StudentT.match(ROWS)
    assert np.array_equal(found.log_density(ROWS), whole.log_density(ROWS))
    one, other = (each.sample(9, np.random.default_rng(2)) for each in (found, whole))
    assert np.array_equal(one, other)
    assert found.dimension == 3
    assert found.folds(ROWS + 1, 100) == []  # other data: a contrast with the whole
    assert found.folds(ROWS, 5) == []  # too little noise for a part each
    other = noise_set(found, ROWS + 1, 50, np.random.default_rng(1))
    assert np.array_equal(other.log_density_at_data, whole.log_density(ROWS + 1))


@pytest.mark.parametrize(
    ("space", "rows"),
    [
        (Box([0.0], [1.0]), [[0.1], [0.2], [0.4], [0.7], [0.9]]),
        (Reals(1), [[0.1], [0.2], [0.4]]),  # too few rows
        (Reals(1), [[0.0]] * 9 + [[1.0]]),  # without the last row nothing varies
        # Without its zero the column has another shape, whose density at 0 is 0 or infinite.
        (Orthant(1), [[0.0], [1.0], [1.2], [1.3], [1.5], [1.6]]),
    ],
)
def test_where_parts_cannot_be_fitted_noise_is_plain(space, rows):
    rows = np.array(rows)
    found = CrossFitted.match(lambda data: matched(space, data), rows)
    assert type(found) is type(matched(space, rows))
    assert type(found) in (Uniform, StudentT, Gamma)


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"needs a function from rows to noise, such as .* got 3"):
        CrossFitted.match(3, ROWS)
    with pytest.raises(InputError, match="needs a function from rows to noise"):
        CrossFitted.match(StudentT, ROWS)
    with pytest.raises(InputError, match=r"needs rows of numbers \(n, d\)"):
        CrossFitted.match(lambda rows: StudentT.match(ROWS), ROWS[:, 0])


def test_the_normalizer_is_right_where_many_numbers_are_fitted(seed):
    """15 columns, 60 rows, 135 fitted numbers: the plain noise is wrong by more than its error."""

    def kernel(x):
        return -(x**2).sum(axis=1) / 2

    exact = 7.5 * np.log(2 * np.pi)
    rng, off = np.random.default_rng(seed), {"parts": [], "whole": []}
    for _ in range(60):
        rows = rng.standard_normal((60, 15))
        for name, noise in (
            ("parts", CrossFitted.match(StudentT.match, rows)),
            ("whole", StudentT.match(rows)),
        ):
            off[name].append(profile_log_z(kernel, noise_set(noise, rows, 600, rng), rows) - exact)
    z = {name: np.mean(each) / (np.std(each) / np.sqrt(60)) for name, each in off.items()}
    assert abs(z["parts"]) < 5
    assert z["whole"] < -10  # the broken twin: rows judged by noise that was fitted to them


def test_matched_noise_of_a_fit_is_cross_fitted():
    model = ncb.models.Ising(3)
    rows = np.random.default_rng(1).integers(0, 2, (40, 3)).astype(float)
    options = {"seed": 1, "draws": 10, "tune": 10, "chains": 1, "progress": False}
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(model, rows, noise="matched", noise_ratio=2, **options)
    (noise,) = posterior.noises.values()
    assert repr(noise) == "CrossFitted(Bernoulli)"
    assert posterior.data.attrs["noise"] == "CrossFitted(Bernoulli)"
    assert isinstance(noise.whole, ncb.noise.Bernoulli)
    with pytest.warns(ncb.FitWarning):  # and can be used again
        again = ncb.fit(model, rows, noise=noise, noise_ratio=2, **options)
    assert np.array_equal(again.theta, posterior.theta)
    assert Binary(3).contains(again.data["noise"]["points"].to_numpy()).all()


def test_noise_made_of_it_meets_rows_by_parts_that_have_not_seen_them():
    found = CrossFitted.match(StudentT.match, ROWS)
    at_rows = found.log_density_at_rows(ROWS, ROWS)
    for rows, part, _ in found.folds(ROWS, 100):
        assert np.array_equal(at_rows[rows], part.log_density(ROWS[rows]))
    elsewhere = found.log_density_at_rows(ROWS[:5], ROWS)
    assert np.array_equal(elsewhere, found.whole.log_density(ROWS[:5]))
    assert at_rows.mean() < found.log_density(ROWS).mean()

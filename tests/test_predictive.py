"""Posterior predictive checks: exact numbers, calibration at the truth, power elsewhere."""

import cmath
import math
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.stats import chisquare

import ncbayes as ncb
from ncbayes import predictive
from ncbayes.contrast import statistic_names
from ncbayes.models import Ising, TorusGraph, VonMises

SMALL = TorusGraph(["a", "b"], marginal=False)
TRUTH = np.array([0.8, 0.4, -0.5, 0.3])
THREE = TorusGraph(3)
INDEPENDENT = TorusGraph(2, reflectional=False)  # where its couplings are zero


def at(model, *thetas, groups=("all",)):
    """A posterior whose draws are these, (draw, statistic) for each group."""
    theta = np.stack([np.atleast_2d(each) for each in thetas], axis=1)[None]
    dataset = xr.Dataset(
        {"theta": (("chain", "draw", "group", "statistic"), theta)},
        coords={"group": list(groups), "statistic": statistic_names(model)},
    )
    return ncb.Posterior(xr.DataTree.from_dict({"posterior": dataset}))


def fit(model, x, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, x, draws=300, tune=200, chains=2, cores=1, seed=seed, progress=False)


def plain(x, name, j, k=None):
    """The statistic of the rows x, written out."""
    n = len(x)
    if name == "resultant":
        return abs(sum(cmath.exp(1j * row[j]) for row in x) / n)
    sign = 1 if name == "sum" else -1
    mean = sum(cmath.exp(1j * (row[j] + sign * row[k])) for row in x) / n
    return cmath.phase(mean) if name == "difference" else abs(mean)


class Recorded:
    """A model of angles that replicates what it is given, in order."""

    def __init__(self, sets):
        self.sets = list(sets)
        self.asked = []
        self.space, self.groups, self.nodes = THREE.space, THREE.groups, THREE.nodes
        self.statistics, self.log_base = THREE.statistics, THREE.log_base

    def sample(self, theta, size, rng):
        self.asked.append((theta.copy(), size))
        return self.sets[len(self.asked) - 1]


def turn(values, center):
    return np.array([math.remainder(value - center, 2 * math.pi) for value in values])


@pytest.mark.parametrize("level", [0.9, 0.5])
def test_the_table_is_brute_force(seed, level):
    rng = np.random.default_rng(seed)
    x = rng.vonmises([0.5, 3.0, -1.0], 0.7, (30, 3)) % (2 * math.pi)
    sets = [rng.vonmises([0.5, 3.0, -1.0], 0.7, (30, 3)) for _ in range(12)]
    thetas = rng.normal(size=(36, 18))
    model = Recorded(sets)
    check = predictive.check_angles(at(THREE, thetas), model, x, draws=12, level=level)
    assert [size for _, size in model.asked] == [30] * 12
    assert np.array_equal([theta for theta, _ in model.asked], thetas[::3])
    pairs = [(0, 1), (0, 2), (1, 2)]
    rows = iter(check.table.itertuples(index=False))
    for name in ("phase_locking", "resultant", "difference", "sum"):
        for ends in [(0,), (1,), (2,)] if name == "resultant" else pairs:
            row = next(rows)
            names = [f"x{j + 1}" for j in ends]
            assert (row.statistic, row.node1, row.node2) == (name, *names, "")[:3]
            observed = plain(x, name, *ends)
            made = np.array([plain(each, name, *ends) for each in sets])
            mean, shift, ours = made.mean(), made - made.mean(), observed - made.mean()
            larger, smaller = np.sum(shift >= ours), np.sum(shift <= ours)
            p_value = min(1, 2 * (1 + min(larger, smaller)) / 13)
            if name == "difference":
                mean = cmath.phase(np.exp(1j * made).sum())
                shift = turn(made, mean)
                pooled = [observed, *made]
                far = abs(turn(pooled, cmath.phase(np.exp(1j * np.array(pooled)).sum())))
                p_value = np.mean(far >= far[0] - 1e-12)
            low, high = mean + np.quantile(shift, [(1 - level) / 2, (1 + level) / 2])
            found = (row.observed, row.replicated, row.low, row.high, row.p_value)
            assert found == pytest.approx((observed, mean, low, high, p_value))
    assert next(rows, None) is None
    assert check.replications.shape == (12, 12)
    assert check.level == level


def test_the_summary_is_brute_force(seed):
    rng = np.random.default_rng(seed)
    x, *sets = rng.vonmises([0.5, 3.0, -1.0], 0.7, (20, 30, 3)) % (2 * math.pi)
    check = predictive.check_angles(at(THREE, np.zeros((1, 18))), Recorded(sets), x, draws=19)
    summary = check.summary()
    assert list(summary.index) == ["phase_locking", "resultant", "difference", "sum"]
    for name, row in summary.iterrows():
        part = check.table[check.table["statistic"] == name]
        ends = [(0,), (1,), (2,)] if name == "resultant" else [(0, 1), (0, 2), (1, 2)]
        values = np.array([[plain(each, name, *end) for end in ends] for each in [x, *sets]])
        if name == "difference":
            centers = np.angle(np.exp(1j * values).sum(axis=0))
            shift = np.column_stack([turn(values[:, k], centers[k]) for k in range(3)])
            middles, halves = (part["low"] + part["high"]) / 2, (part["high"] - part["low"]) / 2
            far = [
                abs(turn([value], middle)[0]) > half
                for value, middle, half in zip(values[0], middles, halves, strict=True)
            ]
        else:
            shift = values - values.mean(axis=0)
            far = (part["observed"] < part["low"]) | (part["observed"] > part["high"])
        score = (shift**2 / (shift**2).mean(axis=0)).mean(axis=1)
        assert row["count"] == 3
        assert row["outside"] == pytest.approx(np.mean(far))
        assert row["smallest"] == part["p_value"].min()
        assert row["p_value"] == pytest.approx(np.mean(score >= score[0] - 1e-12))


def test_directions_are_compared_across_pi():
    """Differences of about pi: replicated on both sides of the cut, observed on the other."""
    x = np.column_stack([np.full(5, math.pi + 0.02), np.zeros(5), np.zeros(5)])
    sets = [x + np.array([shift - 0.02, 0, 0]) for shift in (-0.1, -0.05, 0.05, 0.1)]
    check = predictive.check_angles(
        at(THREE, np.zeros((1, 18))), Recorded(sets), x, draws=4, statistics=["difference"]
    )
    row = check.table.iloc[0]
    assert abs(row["replicated"]) == pytest.approx(math.pi)
    assert row["high"] - row["low"] < 0.3
    assert row["p_value"] == 1.0
    assert check.summary().loc["difference", "outside"] == 0


def p_values(truth, fitted, seed, sets):
    """Of data sets from ``truth``, checked by 19 replications at ``fitted``, (set, row)."""
    rng = np.random.default_rng(seed)
    posterior = at(INDEPENDENT, fitted)
    found = []
    for _ in range(sets):
        x = INDEPENDENT.sample(truth, 40, rng)
        check = predictive.check_angles(posterior, INDEPENDENT, x, draws=19, seed=rng)
        found.append([*check.table["p_value"], *check.summary()["p_value"]])
    return np.array(found)


def uniformity(numbers):
    """The p-value of a chi-square test that numbers fall into ten equal bins of (0, 1]."""
    counts = np.bincount(np.ceil(10 * numbers - 1e-9).astype(int) - 1, minlength=10)
    return chisquare(counts).pvalue


def test_at_the_truth_p_values_are_uniform_and_elsewhere_not(seed):
    """Data and replications are then exchangeable, and a rank among them is uniform."""
    truth = np.array([2.0, 1.0, -0.5, 1.5, 0, 0])
    right = p_values(truth, truth, seed, 150)
    assert right.shape == (150, 5 + 4)
    assert min(uniformity(column) for column in right.T) > 1e-7
    # The twins' first angle is nearly uniform, or a right angle ahead.
    looser, ahead = np.array([0.2, 0.1, *truth[2:]]), np.array([-1.0, 2.0, *truth[2:]])
    of_looser, of_ahead = (p_values(truth, fitted, seed, 30) for fitted in (looser, ahead))
    names = ["phase_locking", "resultant", "difference", "sum"]
    low = {"phase_locking": of_looser, "resultant": of_looser, "difference": of_ahead}
    for name, found in {**low, "sum": of_looser}.items():
        assert uniformity(found[:, 5 + names.index(name)]) < 1e-7


def scores(check):
    """Deviations of the observed lengths in standard deviations of the replicated ones."""
    ours = check.table["statistic"].to_numpy() != "difference"
    made = check.replications[:, ours]
    return (check.table["observed"].to_numpy()[ours] - made.mean(axis=0)) / made.std(axis=0)


def test_the_right_model_passes_and_a_rotational_one_is_rejected(seed):
    """Angles of which the first two have a preferred sum."""
    full = TorusGraph(3, marginal=False)
    rotational = TorusGraph(3, marginal=False, reflectional=False)
    truth = np.zeros(12)
    truth[2] = 1.5  # cos(x1 + x2)
    x = full.sample(truth, 300, np.random.default_rng(seed))
    right, wrong = (
        predictive.check_angles(fit(model, x, seed), model, x, draws=60, seed=seed, sweeps=20)
        for model in (full, rotational)
    )
    # A length near zero is Rayleigh: 7 of its sds above the mean has probability 4e-8.
    assert np.abs(scores(right)).max() < 7
    # The mean of nine uniform numbers is below 0.1 with probability 1e-6.
    assert right.table["p_value"][right.table["statistic"] != "difference"].mean() > 0.1
    # |mean exp(i (x1 + x2))| is about 0.6, where a rotational model gives 1 / sqrt(300).
    row = wrong.table[wrong.table["statistic"] == "sum"].iloc[0]
    assert (row["node1"], row["node2"]) == ("x1", "x2")
    assert row["observed"] > 0.4 > 0.3 > row["high"]
    assert row["p_value"] == pytest.approx(2 / 61)
    assert np.abs(scores(wrong)).max() > 7
    assert wrong.summary().loc["sum", "p_value"] == pytest.approx(1 / 61)


def test_sweeps_give_the_law_of_sample(seed):
    """Means of the replicated statistics by both ways, in their standard errors."""
    x = SMALL.sample(TRUTH, 60, np.random.default_rng(seed))
    options = {"draws": 60, "statistics": ["phase_locking", "sum"]}
    made = [
        predictive.check_angles(at(SMALL, theta), SMALL, x, seed=seed + k, sweeps=sweeps, **options)
        for k, (theta, sweeps) in enumerate([(TRUTH, None), (TRUTH, 20), (0 * TRUTH, 20)])
    ]
    means = [check.replications.mean(axis=0) for check in made]
    errors = [check.replications.std(axis=0) / math.sqrt(60) for check in made]
    z, twin = ((means[0] - means[k]) / np.hypot(errors[0], errors[k]) for k in (1, 2))
    assert np.abs(z).max() < 5.5
    assert np.abs(twin).max() > 5.5


def test_the_same_seed_gives_the_same_check(seed):
    x = SMALL.sample(TRUTH, 20, np.random.default_rng(seed))
    one, two, other = (
        predictive.check_angles(at(SMALL, TRUTH), SMALL, x, draws=3, seed=s, sweeps=2)
        for s in (seed, seed, seed + 1)
    )
    assert one.table.equals(two.table)
    assert not one.table.equals(other.table)


def test_one_angle_has_a_resultant_only(seed):
    model = VonMises()
    x = model.sample(np.array([1.0, 0.0]), 50, np.random.default_rng(seed))
    check = predictive.check_angles(at(model, [1.0, 0.0]), model, x, draws=9, seed=seed)
    assert check.table["statistic"].tolist() == ["resultant"]
    assert check.table["node1"].tolist() == ["x1"]
    assert list(check.summary().index) == ["resultant"]


def test_a_group_is_checked_with_its_own_draws_and_data(seed):
    rng = np.random.default_rng(seed)
    data = {"rest": SMALL.sample(0 * TRUTH, 30, rng), 2: SMALL.sample(TRUTH, 40, rng)}
    both = at(SMALL, 0 * TRUTH, TRUTH, groups=("rest", "2"))
    options = {"draws": 5, "seed": seed}
    check = predictive.check_angles(both, SMALL, data, group=2, **options)
    alone = predictive.check_angles(at(SMALL, TRUTH), SMALL, data[2], **options)
    assert check.table.equals(alone.table)
    with pytest.raises(ncb.InputError, match=r"one of the posterior's groups \['rest', '2'\]"):
        predictive.check_angles(both, SMALL, data)
    with pytest.raises(ncb.InputError, match=r"data must hold the group 'rest', got \['2'\]"):
        predictive.check_angles(both, SMALL, {2: data[2]}, group="rest")


X = np.zeros((4, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"posterior": 3}, "check_angles needs the posterior that ncbayes.fit"),
        ({"model": Ising(2)}, "needs the model of angles that was fitted, .* got Ising"),
        ({"model": TorusGraph}, "needs the model of angles that was fitted, .* the class"),
        ({"model": TorusGraph(2)}, "model must be the one that was fitted, with the statistics"),
        ({"data": np.zeros((4, 3))}, "2 columns"),
        ({"draws": 0}, "draws must be a whole number, 1 or more"),
        ({"sweeps": 0}, "sweeps must be a whole number, 1 or more"),
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"statistics": "sum"}, r"statistics must be some of \['phase_locking', .*got 'sum'"),
        ({"statistics": []}, r"statistics must be some of"),
        ({"statistics": ["sum", "sum"]}, r"each once, got \['sum', 'sum'\]"),
        ({"statistics": ["mean"]}, r"statistics must be some of .* got \['mean'\]"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    given = {"posterior": at(SMALL, TRUTH), "model": SMALL, "data": X, "draws": 2, **change}
    with pytest.raises(ncb.InputError, match=message):
        predictive.check_angles(**given)


def test_one_angle_without_resultant_is_refused():
    model = VonMises()
    with pytest.raises(ncb.InputError, match=r"has one angle and no pairs, .* got \['sum'\]"):
        predictive.check_angles(at(model, [1.0, 0.0]), model, X[:, :1], statistics=["sum"])


def test_a_model_that_cannot_replicate_is_refused():
    model = Recorded([X])
    posterior = at(THREE, np.zeros((1, 18)))
    with pytest.raises(ncb.InputError, match="Recorded has no sweep, so data can't be replicated"):
        predictive.check_angles(posterior, model, np.zeros((4, 3)), sweeps=2)


def of_data(model, theta, x, groups=("all",)):
    """A posterior with these draws that holds its data."""
    posterior = at(model, theta, groups=groups)
    rows = xr.Dataset(
        {"points": (("row", "axis"), x)}, coords={"group": ("row", np.repeat(groups[0], len(x)))}
    )
    tree = dict(posterior.data.children)
    parts = {"posterior": tree["posterior"].to_dataset(), "observed_data": rows}
    return ncb.Posterior(xr.DataTree.from_dict(parts))


class Shelf(Recorded):
    """Replicates what it is given, of a Gaussian."""

    def __init__(self, sets):
        super().__init__(sets)
        model = ncb.models.Gaussian(2)
        self.space, self.groups = model.space, model.groups
        self.statistics, self.log_base = model.statistics, model.log_base


NORMAL = ncb.models.Gaussian(2)
STANDARD = np.array([0.0, 0.0, 1.0, 1.0, 0.0])


def spread(x):
    return x.std(axis=0)


def test_own_statistics_and_functions_are_brute_force(seed):
    x, *sets = np.random.default_rng(seed).normal(size=(13, 30, 2))
    posterior = of_data(NORMAL, np.tile(STANDARD, (24, 1)), x)
    check = predictive.check(posterior, Shelf(sets), draws=12, level=0.5)
    assert check.table["statistic"].tolist() == ["linear"] * 2 + ["precision"] * 3
    names = ["x1", "x2", "-x1^2/2", "-x2^2/2", "-x1*x2"]
    assert check.table["component"].tolist() == names
    means = np.array([NORMAL.statistics(each).mean(axis=0) for each in sets])
    ours = NORMAL.statistics(x).mean(axis=0)
    assert np.allclose(check.table["observed"], ours)
    assert np.allclose(check.table["replicated"], means.mean(axis=0))
    assert np.allclose(check.table[["low", "high"]].T, np.quantile(means, [0.25, 0.75], axis=0))
    tails = np.minimum((means >= ours).sum(axis=0), (means <= ours).sum(axis=0))
    assert np.allclose(check.table["p_value"], np.minimum(1, 2 * (1 + tails) / 13))
    assert np.allclose(check.replications, means)
    one = predictive.check(posterior, Shelf(sets), spread, draws=12)
    assert one.table["statistic"].tolist() == ["spread"] * 2
    assert one.table["component"].tolist() == ["0", "1"]
    assert np.allclose(one.table["observed"], x.std(axis=0))
    largest = {"largest": lambda points: points.max(), "spread": spread}
    both = predictive.check(posterior, Shelf(sets), largest, draws=12)
    assert both.table["component"].tolist() == ["", "0", "1"]
    assert both.table["observed"][0] == x.max()
    assert list(both.summary().index) == ["largest", "spread"]
    other = predictive.check(posterior, Shelf([each + 1 for each in sets]), data=x + 1, draws=12)
    assert np.allclose(other.table["observed"][:2], ours[:2] + 1)


def test_p_values_of_functions_are_uniform_at_the_truth_and_not_elsewhere(seed):
    rng = np.random.default_rng(seed)

    def p_value(theta):
        x = NORMAL.sample(theta, 30, rng)
        posterior = of_data(NORMAL, STANDARD, x)
        return predictive.check(posterior, NORMAL, spread, draws=19, seed=rng).table["p_value"]

    right = np.array([p_value(STANDARD) for _ in range(200)])
    wrong = np.array([p_value(STANDARD * [1, 1, 2, 2, 1]) for _ in range(40)])
    # Two-sided p-values of 19 replications are the multiples of 0.1, each with probability 0.1.
    assert min(uniformity(column) for column in right.T) > 1e-7
    assert max(uniformity(column) for column in wrong.T) < 1e-7


def test_a_fit_of_ising_votes_is_checked_as_it_is(seed):
    model = Ising(3)
    x = model.sample(np.array([0.2, -0.3, 0.1, 1.0, 0.0, -0.8]), 150, np.random.default_rng(seed))
    posterior = fit(model, x, seed)
    check = predictive.check(posterior, model, draws=40, seed=seed, sweeps=10)
    # Means of fitted statistics are reproduced nearly by construction: far within 5 sds.
    off = check.table["observed"] - check.table["replicated"]
    assert np.abs(off / check.replications.std(axis=0)).max() < 5
    assert check.summary()["count"].tolist() == [3, 3]


def broken(points):
    return np.nan


def growing(points):
    growing.size = getattr(growing, "size", 0) + 1
    return np.zeros(growing.size)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"posterior": 3}, "predictive.check needs the posterior that ncbayes.fit"),
        ({"model": 3}, "model must be the one that was fitted, got 3"),
        ({"model": Ising(2)}, "model must be the one that was fitted, with the statistics"),
        ({"model": THREE}, "model must be the one that was fitted, with the statistics"),
        ({"statistics": "mean"}, "statistics must be a function of points .* got 'mean'"),
        ({"statistics": {}}, "statistics must be a function of points"),
        ({"statistics": {"a": 3}}, "statistics must be a function of points"),
        ({"statistics": broken}, "the statistic 'broken' must return a finite number or vector"),
        ({"statistics": lambda x: "high"}, "must return a finite number or vector"),
        ({"statistics": lambda x: 1j}, "must return a finite number or vector"),
        ({"statistics": growing}, "'growing' must have as many numbers for every data set, got 1"),
        ({"draws": 0}, "draws must be a whole number, 1 or more"),
        ({"level": 0}, "level must be between 0 and 1"),
        ({"posterior": at(NORMAL, STANDARD)}, r"the posterior holds no data; pass data=\.\.\."),
    ],
)
def test_what_cannot_be_checked_is_refused(change, message):
    x = np.random.default_rng(1).normal(size=(5, 2))
    given = {"posterior": of_data(NORMAL, STANDARD, x), "model": NORMAL, "draws": 3, **change}
    with pytest.raises(ncb.InputError, match=message):
        predictive.check(**given)

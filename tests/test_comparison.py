"""Posteriors side by side: numbers written out, agreement and disagreement told apart."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import wasserstein_distance

import ncbayes as ncb


def by_hand(theta, names, groups=("all",), seconds=2.0, **more):
    """A posterior with these draws, (chain, draw, group, statistic)."""
    dims = ("chain", "draw", "group", "statistic")
    values = {"theta": (dims, theta)}
    for name, draws in more.items():
        values[name] = (dims[: draws.ndim], draws)
    dataset = xr.Dataset(values, coords={"group": list(groups), "statistic": list(names)})
    tree = xr.DataTree.from_dict({"posterior": dataset})
    tree.attrs = {"model": "H()", "complete": 1, "engine": "Hand()", "wall_seconds": seconds}
    return ncb.Posterior(tree)


def drawn(rng, means, sds, draws=500, **options):
    theta = rng.normal(means, sds, (2, draws, 1, len(means)))
    return by_hand(theta, ["a", "b", "c"][: len(means)], **options)


def test_the_table_is_brute_force(seed):
    rng = np.random.default_rng(seed)
    one, two = drawn(rng, [1.0, -2.0], [1.0, 3.0]), drawn(rng, [1.5, -2.0], [2.0, 3.0], draws=700)
    found = ncb.compare({"one": one, "two": two}, level=0.8)
    assert found.reference == "one"
    assert found.level == 0.8
    table = found.table.set_index(["parameter", "posterior"])
    assert list(table.index) == [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]
    for k, name in enumerate("ab"):
        base, other = (each.theta.to_numpy()[:, :, 0, k] for each in (one, two))
        row = table.loc[(name, "two")]
        assert row["mean"] == pytest.approx(other.mean())
        assert row["sd"] == pytest.approx(other.std(ddof=1))
        ends = np.quantile(other, [0.1, 0.9])
        assert [row["eti80_low"], row["eti80_high"]] == pytest.approx(list(ends))
        change, sd = other.mean() - base.mean(), base.std(ddof=1)
        assert row["difference_sds"] == pytest.approx(change / sd)
        errors = [table.loc[(name, each), "mcse_mean"] for each in ("one", "two")]
        assert row["difference_errors"] == pytest.approx(change / np.hypot(*errors))
        assert row["sd_ratio"] == pytest.approx(other.std(ddof=1) / sd)
        distance = wasserstein_distance(other.ravel(), base.ravel())
        assert row["wasserstein_sds"] == pytest.approx(distance / sd)
        own = table.loc[(name, "one")]
        assert own["difference_sds"] == own["difference_errors"] == own["wasserstein_sds"] == 0
        assert own["sd_ratio"] == 1
        # Draws are independent: about as many effective ones.
        assert 0.5 * base.size < own["ess_bulk"] < 1.6 * base.size
    view = found.overview.loc["two"]
    own = table.xs("two", level="posterior")
    assert view["draws"] == 1400
    assert view["seconds"] == 2.0
    assert view["worst_ess_a_second"] == pytest.approx(own["ess_bulk"].min() / 2)
    assert view["median_ess_a_second"] == pytest.approx(own["ess_bulk"].median() / 2)
    assert view["difference_sds"] == pytest.approx(own["difference_sds"].abs().max())
    assert (view["sd_ratio_low"], view["sd_ratio_high"]) == (
        own["sd_ratio"].min(),
        own["sd_ratio"].max(),
    )


def test_agreement_and_disagreement_are_said_in_words(seed):
    rng = np.random.default_rng(seed)
    one, same, other = (drawn(rng, [mean], [1.0]) for mean in (0.0, 0.0, 0.5))
    text = repr(ncb.compare({"one": one, "same": same, "other": other}))
    assert text.startswith("Reference: one, 1 parameters.")
    assert "same: means differ by up to 0.0" in text or "same: means differ by up to 0.1" in text
    assert "no more than Monte Carlo error" in text.splitlines()[1]
    assert "more than Monte Carlo error" in text.splitlines()[2]
    assert "no more" not in text.splitlines()[2]
    assert "worst_ess_a_second" in text


def test_what_posteriors_share_is_compared(seed):
    rng = np.random.default_rng(seed)
    log_z = rng.normal(size=(2, 100, 1))
    scale = rng.normal(size=(2, 100))
    one = by_hand(rng.normal(size=(2, 100, 1, 2)), ["a", "b"], log_z=log_z, **{"theta.tau": scale})
    two = by_hand(rng.normal(size=(2, 50, 1, 2)), ["b", "c"], **{"theta.tau": scale[:, :50]})
    three = by_hand(rng.normal(size=(2, 50, 1, 1)), ["b"], log_z=log_z[:, :50])
    assert set(ncb.compare({"one": one, "two": two}).table["parameter"]) == {"b"}
    both = ncb.compare({"one": one, "three": three}, reference="three")
    assert list(both.table["parameter"]) == ["b", "b", "log_z", "log_z"]
    groups = by_hand(rng.normal(size=(2, 50, 2, 1)), ["b"], groups=("x", "y"))
    table = ncb.compare({"one": groups, "two": groups}).table
    assert set(table["parameter"]) == {"b[x]", "b[y]"}
    with pytest.raises(ncb.InputError, match=r"no parameter in common: one has \['a', 'b', 'log_z"):
        ncb.compare({"one": one, "two": groups})


def test_a_constant_parameter_has_no_ratio():
    theta = np.ones((2, 50, 1, 1))
    table = ncb.compare({"one": by_hand(theta, ["a"]), "two": by_hand(theta, ["a"])}).table
    assert np.isnan(table["sd_ratio"]).all()
    assert (table["mean"] == 1).all()


POSTERIOR = by_hand(np.zeros((1, 5, 1, 1)), ["a"])


@pytest.mark.parametrize(
    ("posteriors", "options", "message"),
    [
        ({"a": POSTERIOR}, {}, "compare needs at least two posteriors by name, such as"),
        ([POSTERIOR, POSTERIOR], {}, "at least two posteriors by name, .* got "),
        ({"a": POSTERIOR, "b": 3}, {}, "at least two posteriors by name"),
        ({"a": POSTERIOR, "b": POSTERIOR}, {"reference": "c"}, r"one of the posteriors \['a', 'b'"),
        ({"a": POSTERIOR, "b": POSTERIOR}, {"reference": ["a"]}, "reference must be the name"),
        ({1: POSTERIOR, "1": POSTERIOR}, {}, "compare needs posteriors of different names"),
        ({"a": POSTERIOR, "b": POSTERIOR}, {"level": 2}, "level must be between 0 and 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(posteriors, options, message):
    with pytest.raises(ncb.InputError, match=message):
        ncb.compare(posteriors, **options)


def test_inner_parameters_of_an_energy_are_no_scales():
    dims, values = ("chain", "draw", "group"), np.random.default_rng(1).normal(size=(2, 50, 1))
    names = ["net.weight", "net.weight.tau", "sd", "sd.tau", "log_z"]
    dataset = xr.Dataset(dict.fromkeys(names, (dims, values)), coords={"group": ["all"]})
    tree = xr.DataTree.from_dict({"posterior": dataset})
    tree.attrs = {"model": "Energy", "complete": 1}
    posterior = ncb.Posterior(tree)
    found = ncb.compare({1: posterior, 2: posterior}, reference=2)
    assert found.reference == "2"
    assert list(dict.fromkeys(found.table["parameter"])) == ["net.weight", "sd", "log_z"]


def test_of_one_draw_nothing_is_said(seed):
    rng = np.random.default_rng(seed)
    one, many = drawn(rng, [1.0], [1.0], draws=1), drawn(rng, [1.0], [1.0])
    single = by_hand(one.theta.to_numpy()[:1], ["a"])
    assert "many: too few draws" in repr(ncb.compare({"one": single, "many": many}))

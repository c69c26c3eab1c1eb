"""The result of a fit: its schema, summary, file, and the warnings that come with it."""

import warnings
from dataclasses import dataclass

import arviz_base
import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats

import ncbayes as ncb
from ncbayes import diagnostics, models, noise, priors
from ncbayes.base import Draw
from ncbayes.engines import Gibbs

X = np.random.default_rng(0).normal(size=(30, 1))
GROUPED = {"before": X, 2: X[:20] + 1}
NORMAL = noise.Normal(0.5, 4.0)
AXES = {"chain_axis": 0, "draw_axis": 1}


def noisy_fit(data=X, **options):
    """A short fit of a Gaussian, with the warnings that it deserves."""
    short = {"draws": 40, "tune": 20, "chains": 2, "cores": 1, "seed": 1, "progress": False}
    return ncb.fit(
        models.Gaussian(1), data, **{**short, "noise": NORMAL, "noise_ratio": 1, **options}
    )


def fit(data=X, **options):
    """The same without them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return noisy_fit(data, **options)


@pytest.fixture(scope="module")
def static():
    return fit()


@pytest.fixture(scope="module")
def grouped():
    return fit(
        GROUPED,
        noise=noise.Pooled(NORMAL, sets=3),
        prior={"linear": priors.HalfCauchyNormal(1.0)},
        noise_ratio=2,
    )


def test_the_tree_has_the_groups_dims_and_names_of_the_schema(grouped):
    tree = grouped.data
    wanted = {"posterior", "sample_stats", "observed_data", "noise", "normalizer", "verification"}
    assert set(tree.children) == wanted
    draws = {"chain": 2, "draw": 40}
    assert dict(grouped.theta.sizes) == {**draws, "group": 2, "statistic": 2}
    assert grouped.theta.dims == ("chain", "draw", "group", "statistic")
    assert grouped.log_z.dims == ("chain", "draw", "group")
    assert tree["posterior"]["linear.scale"].shape == (2, 40, 1)
    assert set(tree["posterior"].data_vars) == {"theta", "log_z", "linear.scale"}
    assert tree["posterior"]["group"].values.tolist() == ["before", "2"]
    assert tree["posterior"]["statistic"].values.tolist() == ["x1", "-x1^2/2"]
    assert tree["posterior"]["block"].values.tolist() == ["linear", "precision"]
    assert tree["posterior"]["chain"].values.tolist() == [0, 1]
    assert tree["posterior"]["draw"].values.tolist() == list(range(40))
    assert dict(tree["sample_stats"].sizes) == draws
    assert {"log_likelihood", "noise_set", "sweep_seconds"} <= set(tree["sample_stats"].data_vars)


def test_the_tree_holds_the_points(grouped):
    observed, against = grouped.data["observed_data"], grouped.data["noise"]
    assert np.array_equal(observed["points"], np.concatenate([X, X[:20] + 1]))
    assert observed["group"].values.tolist() == ["before"] * 30 + ["2"] * 20
    assert against["points"].shape == (3 * 2 * 50, 1)
    assert np.array_equal(against["log_density"], NORMAL.log_density(against["points"].values))
    assert against["row_group"].values.tolist() == (["before"] * 60 + ["2"] * 40) * 3
    assert against["row_noise_set"].values.tolist() == [0] * 100 + [1] * 100 + [2] * 100
    assert against["auc"].dims == ("noise_set", "group")


def test_one_group_is_called_all(static):
    assert static.theta["group"].values.tolist() == ["all"]
    assert list(static.summary().index) == ["x1", "-x1^2/2", "log_z"]


def test_the_tree_says_where_it_is_from(static):
    attributes = static.data.attrs
    assert attributes["inference_library"] == "ncbayes"
    assert attributes["ncbayes_version"] == ncb.__version__
    assert attributes["model"] == "Gaussian(dimension=1)"
    assert (attributes["draws"], attributes["tune"], attributes["chains"]) == (40, 20, 2)
    assert (attributes["seed"], attributes["schedule"]) == ("1", "Fixed")
    assert attributes["noise_ratio"] == 1.0
    for child in static.data.children.values():
        assert child.attrs["inference_library"] == "ncbayes"


def test_theta_and_log_z_are_the_two_parts_of_coef(grouped):
    coef = np.stack([chain.draws["coef"] for chain in grouped.run.chains])
    assert np.array_equal(grouped.theta, coef[..., :-1])
    # The engine's last coefficient is c + theta . center, the center being that of all data.
    x = np.concatenate([X, X[:20] + 1])
    center = np.concatenate([x.mean(axis=0), -(x**2).mean(axis=0) / 2])
    own = grouped.data["normalizer"]["contrast_log_z"]
    np.testing.assert_allclose(own, coef[..., :-1] @ center - coef[..., -1], rtol=1e-12)
    assert not np.allclose(own, -coef[..., -1])


def test_log_z_is_that_of_the_model_at_each_draw(grouped):
    model = models.Gaussian(1)
    wanted = [model.log_partition(theta) for theta in grouped.theta.to_numpy().reshape(-1, 2)]
    np.testing.assert_allclose(grouped.log_z.to_numpy().ravel(), wanted, rtol=1e-12)
    assert grouped.data["normalizer"]["way"].to_numpy().tolist() == ["exact", "exact"]


def log_odds_of(posterior, chain, draw):
    """Log odds of data and of noise, from nothing but the tree and the noise density."""
    theta = posterior.theta.values[chain, draw, 0]
    points = [posterior.data[name]["points"].values[:, 0] for name in ("observed_data", "noise")]
    return [
        theta[0] * x
        - theta[1] * x**2 / 2
        - posterior.data["normalizer"]["contrast_log_z"].values[chain, draw, 0]
        - NORMAL.log_density(x[:, None])
        + np.log(len(points[0]) / len(points[1]))
        for x in points
    ]


def test_log_likelihood_follows_from_the_tree(static):
    of_data, of_noise = log_odds_of(static, 1, 7)
    expected = -np.logaddexp(0, -of_data).sum() - np.logaddexp(0, of_noise).sum()
    found = static.data["sample_stats"]["log_likelihood"].values[1, 7]
    assert found == pytest.approx(expected, rel=1e-10)


def test_auc_is_that_of_the_mean_coefficients(static):
    coef = np.append(static.theta.mean(("chain", "draw")), -static.log_z.mean())
    x = [static.data[name]["points"].values[:, 0] for name in ("observed_data", "noise")]
    of_data, of_noise = (
        coef[0] * p - coef[1] * p**2 / 2 - NORMAL.log_density(p[:, None]) for p in x
    )
    expected = (of_data[:, None] > of_noise).mean()
    assert static.data["noise"]["auc"].values == pytest.approx(expected)


@pytest.mark.parametrize(("level", "name", "tail"), [(0.9, "90", 0.05), (0.5, "50", 0.25)])
def test_summary_is_numpy_and_arviz(static, level, name, tail):
    table = static.summary(level)
    assert list(table.columns) == [
        "mean",
        "sd",
        "median",
        f"eti{name}_low",
        f"eti{name}_high",
        "mcse_mean",
        "ess_bulk",
        "ess_tail",
        "r_hat",
    ]
    columns = [*np.moveaxis(static.theta.values[:, :, 0], 2, 0), static.log_z.values[:, :, 0]]
    for row, values in zip(table.itertuples(index=False), columns, strict=True):
        bulk = float(array_stats.ess(values, **AXES))
        assert row == pytest.approx(
            (
                values.mean(),
                values.std(ddof=1),
                np.median(values),
                np.quantile(values, tail),
                np.quantile(values, 1 - tail),
                values.std(ddof=1) / np.sqrt(bulk),
                bulk,
                float(array_stats.ess(values, method="tail", prob=(tail, 1 - tail), **AXES)),
                float(array_stats.rhat(values, **AXES)),
            )
        )


def test_summary_is_at_ninety_percent_unless_told(static):
    assert static.summary().equals(static.summary(0.9))
    assert {"eti97.5_low", "eti97.5_high"} <= set(static.summary(0.975).columns)


def test_summary_names_groups_where_there_are_several(grouped):
    assert list(grouped.summary().index) == [
        "x1[before]",
        "-x1^2/2[before]",
        "x1[2]",
        "-x1^2/2[2]",
        "log_z[before]",
        "log_z[2]",
        "linear.scale",
    ]


def test_pooled_sets_are_judged_without_their_means(grouped):
    sets = grouped.data["sample_stats"]["noise_set"].values[0]
    assert np.bincount(sets).tolist() == [14, 13, 13]
    values = grouped.log_z.values[:, :, 1]
    means = np.array([values[:, sets == k].mean() for k in range(3)])
    centred = values - means[sets]
    spreads = np.array([centred[:, sets == k].std() for k in range(3)])
    standard = centred / spreads[sets]
    row = grouped.summary().loc["log_z[2]"]
    assert row["ess_bulk"] == pytest.approx(array_stats.ess(standard, **AXES))
    assert row["r_hat"] == pytest.approx(array_stats.rhat(standard, **AXES))
    within = np.sum(centred**2) / (centred.size - 3) / row["ess_bulk"]
    assert row["mcse_mean"] == pytest.approx(np.sqrt(within + means.var(ddof=1) / 3))


def test_sets_far_apart_are_not_taken_for_bad_mixing(seed):
    sets = np.repeat([0, 1], 500)
    normal = np.random.default_rng(seed).normal(size=(4, 1000))
    bulk, tails, r_hat = diagnostics.convergence(normal + 10 * sets, sets)
    assert min(bulk, tails) > 2000
    assert r_hat < 1.01
    as_one, _, r_hat_as_one = diagnostics.convergence(normal + 10 * sets, np.zeros(1000, int))
    assert as_one < 100
    assert r_hat_as_one > 1.01


def test_sets_of_different_spread_are_not_taken_for_bad_mixing(seed):
    sets = np.repeat([0, 1], 500)
    values = np.random.default_rng(seed).normal(size=(4, 1000)) * (1 + sets)
    assert diagnostics.convergence(values, sets)[2] < 1.01
    assert diagnostics.convergence(values, np.zeros(1000, int))[2] > 1.01
    values[0] *= 2  # on both sets: one chain is wider than the others
    assert diagnostics.convergence(values, sets)[2] > 1.01


def test_chains_that_disagree_on_every_set_are_seen(seed):
    sets = np.repeat([0, 1], 500)
    values = np.random.default_rng(seed).normal(size=(4, 1000)) + 10 * sets
    values[0] += 1
    assert diagnostics.convergence(values, sets)[2] > 1.01


@pytest.mark.parametrize("values", [np.ones((2, 100)), np.arange(6.0).reshape(2, 3)])
def test_convergence_of_a_constant_or_of_three_draws_is_unknown(values):
    sets = np.zeros(values.shape[1], int)
    assert np.isnan(diagnostics.convergence(values, sets)).all()


@pytest.mark.parametrize("ties", [False, True])
def test_overlap_counts_pairs(seed, ties):
    rng = np.random.default_rng(seed)
    log_odds = rng.integers(0, 5, 60).astype(float) if ties else rng.normal(size=60)
    is_data = rng.permutation(60) < 25
    of_data, of_noise = log_odds[is_data][:, None], log_odds[~is_data]
    pairs = (of_data > of_noise).sum() + (of_data == of_noise).sum() / 2
    assert diagnostics.overlap(log_odds, is_data) == pytest.approx(pairs / (25 * 35), rel=1e-14)


def test_overlap_at_its_ends():
    is_data = np.array([True, True, False])
    assert diagnostics.overlap(np.array([1.0, 2.0, 0.0]), is_data) == 1
    assert diagnostics.overlap(np.array([1.0, 2.0, 3.0]), is_data) == 0
    assert diagnostics.overlap(np.zeros(3), is_data) == 0.5


def test_between_set_spread_by_hand(grouped):
    table = grouped.between_set_spread()
    sets = grouped.data["sample_stats"]["noise_set"].values[0]
    assert list(table.index) == list(grouped.summary().index)
    for name, values in [
        ("x1[before]", grouped.theta.values[:, :, 0, 0]),
        ("log_z[2]", grouped.log_z.values[:, :, 1]),
    ]:
        parts = [values[:, sets == k].ravel() for k in range(3)]
        means = np.array([part.mean() for part in parts])
        between = np.sqrt(((means - means.mean()) ** 2).sum() / 2)
        within = np.sqrt(np.mean([((part - part.mean()) ** 2).mean() for part in parts]))
        assert table.loc[name].tolist() == pytest.approx([between, within, between / within])


@pytest.mark.parametrize("schedule", [noise.Fixed, noise.Fresh])
def test_between_set_spread_needs_sets(schedule):
    with pytest.raises(
        ncb.InputError, match=r"needs a fit with several of them; use fit\(.*noise=ncbayes.noise.P"
    ):
        fit(noise=schedule(NORMAL)).between_set_spread()


def test_a_file_gives_back_what_was_saved(grouped, tmp_path):
    grouped.save(tmp_path / "fit.nc")
    loaded = ncb.load(tmp_path / "fit.nc")
    assert loaded.data.identical(grouped.data)
    assert loaded.data.attrs == grouped.data.attrs
    assert loaded.summary().equals(grouped.summary())
    assert loaded.between_set_spread().equals(grouped.between_set_spread())
    assert loaded.warning_lines() == grouped.warning_lines()
    assert repr(loaded) == repr(grouped)
    assert loaded.complete
    with pytest.raises(
        ncb.InputError, match=r"can't be extended, since a file holds no code; load it with"
    ):
        loaded.extend(10)


def test_a_loaded_file_can_be_saved_again_and_removed(static, tmp_path):
    static.save(tmp_path / "one.nc")
    loaded = ncb.load(str(tmp_path / "one.nc"))
    (tmp_path / "one.nc").unlink()
    loaded.save(str(tmp_path / "two.nc"))
    assert ncb.load(tmp_path / "two.nc").data.identical(static.data)


def test_saving_replaces_the_whole_file(static, grouped, tmp_path):
    grouped.save(tmp_path / "fit.nc")
    static.save(tmp_path / "fit.nc")
    assert ncb.load(tmp_path / "fit.nc").data.identical(static.data)
    assert [path.name for path in tmp_path.iterdir()] == ["fit.nc"]


def test_saving_needs_a_folder(static, tmp_path):
    with pytest.raises(
        ncb.InputError, match=r"can't save to .*: it must be a file in a folder that exists"
    ):
        static.save(tmp_path / "gone" / "fit.nc")
    with pytest.raises(ncb.InputError, match="must be a file"):
        static.save(tmp_path)
    with pytest.raises(ncb.InputError, match="path must be the name of a file, got 3"):
        static.save(3)
    with pytest.raises(ncb.InputError, match="path must be the name of a file, got 3"):
        ncb.load(3)
    assert not list(tmp_path.iterdir())


def test_loading_what_is_not_ours(tmp_path):
    with pytest.raises(ncb.InputError, match=r"there is no file '.*none.nc'"):
        ncb.load(tmp_path / "none.nc")
    with pytest.raises(ncb.InputError, match="there is no file"):
        ncb.load(tmp_path)
    (tmp_path / "notes.txt").write_text("not a fit")
    with pytest.raises(ncb.InputError, match=r"notes.txt' is not a netCDF file"):
        ncb.load(tmp_path / "notes.txt")
    xr.Dataset({"x": ("row", [1.0, 2.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(ncb.InputError, match=r"other.nc' was not written by ncbayes"):
        ncb.load(tmp_path / "other.nc")


def test_a_file_cut_short_is_not_taken_for_a_fit(static, tmp_path):
    static.save(tmp_path / "fit.nc")
    whole = (tmp_path / "fit.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ncb.InputError, match=r"cut.nc' is not a netCDF file"):
        ncb.load(tmp_path / "cut.nc")


def test_arviz_takes_the_tree_as_it_is(grouped):
    assert arviz_base.convert_to_datatree(grouped.data) is grouped.data
    stacked = arviz_base.extract(grouped.data, var_names="theta")
    assert stacked.sizes["sample"] == 80
    assert np.array_equal(
        stacked.transpose("sample", "group", "statistic"), grouped.theta.values.reshape(80, 2, 2)
    )


def test_arviz_diagnostics_take_the_tree_as_it_is(static):
    # The labelled half of arviz-stats is there only together with xarray-einstats.
    pytest.importorskip("xarray_einstats")
    import arviz_stats

    table = static.summary()
    assert arviz_stats.ess(static.data)["log_z"].item() == pytest.approx(table["ess_bulk"]["log_z"])
    r_hat = static.data["posterior"].to_dataset().azstats.rhat()
    assert r_hat["theta"].values.ravel() == pytest.approx(table["r_hat"].values[:2])


def test_repr_begins_with_the_verdict(static, grouped):
    verdict, described = repr(static).splitlines()
    assert verdict == static.verdict().line
    assert described == (
        "<Posterior of Gaussian(dimension=1): 2 chains x 40 draws, groups 1, statistics 2, "
        "complete>"
    )
    assert "groups 2" in repr(grouped)


def test_draws_of_an_extension_are_whole_numbers(static):
    for draws in (-1, 1.5, True, "10"):
        with pytest.raises(ncb.InputError, match="draws must be a whole number, 0 or more, got"):
            static.extend(draws)


def altered(posterior, change, **attributes):
    """A copy of the result whose draws went through ``change``."""
    tree = posterior.data.copy(deep=True)
    for name in ("theta", "log_z"):
        values = tree["posterior"][name]
        tree["posterior"][name] = values.copy(data=change(values.values))
    tree.attrs.update(attributes)
    return ncb.Posterior(tree)


def assert_advice(line, *parts):
    assert "\n" not in line
    assert len(line) < 300
    for part in parts:
        assert part in line


@pytest.fixture(scope="module")
def long():
    return fit(draws=800, tune=0, chains=4)


def independent(seed):
    rng = np.random.default_rng(seed)
    return lambda values: rng.normal(size=values.shape)


def test_draws_that_mix_give_no_warning(long, seed):
    assert altered(long, independent(seed)).warning_lines() == []


def test_a_chain_elsewhere_is_told_by_r_hat(long, seed):
    draw = independent(seed)

    def shifted(values):
        values = draw(values)
        values[0, ..., 0] += 1.0
        return values

    lines = altered(long, shifted).warning_lines()
    assert_advice(
        lines[0],
        "R-hat is above 1.01 for 2 of 3 quantities (worst 1.",
        "the chains have not mixed",
        "use more draws, e.g. posterior.extend(draws=1600)",
    )


def test_slow_draws_are_told_by_their_effective_number(long, seed):
    draw = independent(seed)
    blocks = lambda values: np.repeat(draw(values)[:, ::20], 20, axis=1)  # noqa: E731
    posterior = altered(long, blocks)
    least = posterior.summary()[["ess_bulk", "ess_tail"]].min().min()
    (line,) = posterior.warning_lines()
    assert 40 < least < 400
    assert_advice(
        line,
        f"fewer than 100 effective draws a chain for 3 of 3 quantities (worst {least:.0f} in all, ",
    )
    # The advice is one number, and enough: so many more draws at this rate reach what is wanted.
    (concern,) = [each for each in posterior.verdict().concerns if each.kind == "mixing"]
    more = concern.facts["more_draws"]
    assert line.endswith(f"use more draws, e.g. posterior.extend(draws={more})")
    assert least * (800 + more) / 800 >= 400


@pytest.mark.parametrize("known", [(900.0, np.nan), (np.nan, 900.0)])
def test_effective_draws_that_are_not_known_are_few(long, seed, known, monkeypatch):
    monkeypatch.setattr(diagnostics, "convergence", lambda *_: (*known, 1.0))
    (line,) = altered(long, independent(seed)).warning_lines()
    assert_advice(line, "for 3 of 3 quantities (worst 0 in all, ", "posterior.extend(draws=1600)")


def test_an_interrupted_fit_says_how_to_finish(long, seed):
    posterior = altered(long, independent(seed), complete=0, draws=5000)
    assert not posterior.complete
    assert repr(posterior).endswith("incomplete>")
    (line,) = posterior.warning_lines()
    assert_advice(
        line, "4 chains of 800 draws were kept of 4 of 5000; posterior.extend(draws=0) finishes it"
    )


@dataclass(frozen=True)
class Stuck:
    """An engine whose chains never leave where they began."""

    def start(self, target, rng):
        return Gibbs().start(target, rng)

    def step(self, target, draw, rng):
        return Draw(draw.coef + 1e-6 * rng.normal(size=draw.coef.shape), draw.scales)


def test_fits_warn_of_chains_that_do_not_move(seed):
    with pytest.warns(ncb.FitWarning) as caught:
        noisy_fit(engine=Stuck(), draws=50, tune=0, seed=seed)
    lines = [str(each.message) for each in caught]
    assert len([line for line in lines if "R-hat" in line]) == 1
    told = next(line for line in lines if "R-hat" in line)
    assert "R-hat is above 1.01 for 3 of 3" in told
    assert "fewer than 100 effective draws a chain for 3 of 3" in told
    assert "use more draws, e.g. posterior.extend(draws=" in told
    # It is the user's line that is pointed at, here the one in noisy_fit.
    assert {each.filename for each in caught} == {__file__}


def test_fits_warn_of_too_few_draws(seed):
    with pytest.warns(ncb.FitWarning) as caught:
        posterior = noisy_fit(draws=20, tune=5, seed=seed)
    lines = [str(each.message) for each in caught]
    assert lines == posterior.warning_lines()
    told = next(line for line in lines if "effective draws" in line)
    assert_advice(told, "fewer than 100 effective draws a chain for 3 of 3", "use more draws")


@pytest.mark.parametrize("data", [X, {"near": X + 60, "far": X}], ids=["one group", "two groups"])
def test_fits_warn_of_noise_that_is_told_apart_perfectly(data, seed):
    far = noise.Normal(60.0, 1.0)
    with pytest.warns(ncb.FitWarning) as caught:
        noisy_fit(data, noise=far, prior=priors.Normal(1.0), seed=seed)
    # Where the noise tells nothing, some draws have no integral, which is a line of its own.
    lines = [str(each.message) for each in caught]
    line = next(each for each in lines if "told apart" in each)
    where = " in group far" if isinstance(data, dict) else ""
    assert_advice(
        line,
        f"noise and data are told apart perfectly{where} (AUC 1.0000)",
        'log_z rests on its prior; choose noise closer to the data, e.g. noise="auto"',
    )


def test_automatic_noise_that_is_told_apart_is_not_advised_again(static):
    tree = static.data.copy(deep=True)
    tree["noise"]["auc"] = tree["noise"]["auc"] * 0 + 1
    assert diagnostics.separation(tree).endswith('e.g. noise="auto"')
    tree.attrs["schedule"] = "Auto"
    line = diagnostics.separation(tree)
    assert_advice(line, "noise and data are told apart perfectly", "pass noise of your own")
    assert "auto" not in line


def test_noise_like_the_data_is_no_reason_to_warn(static):
    assert not any("told apart" in line for line in static.warning_lines())

"""The noise report: numbers by hand, words by the numbers."""

import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import asymptotics, diagnostics, reports
from ncbayes.noise import Adaptive, Auto, Fixed, Fresh, Normal, Pooled

MODEL = ncb.models.Gaussian(1)
X = np.random.default_rng(0).normal(size=(120, 1))
GROUPS = {"before": X[:80], 2: X[80:]}
COLUMNS = [
    *("noise_points", "auc", "lowest_log_odds", "highest_log_odds", "ideal_noise"),
    *("information_kept", "widening", "worst_widening", "log_z_error"),
]


def run(data=X, model=MODEL, **options):
    short = {"draws": 60, "tune": 60, "chains": 2, "cores": 1, "seed": 1, "progress": False}
    if not isinstance(options.get("noise"), Auto):
        short["noise_ratio"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, **{"noise": "matched", **short, **options})


FITS = {
    "fixed": {"noise": Fixed(Normal(0.0, 1.0))},
    "matched": {"noise_ratio": 2.5},
    "fresh": {"noise": Fresh(Normal(0.0, 2.0))},
    "pooled": {"noise": Pooled(Normal(0.0, 2.0), sets=3)},
    "adaptive": {"noise": Adaptive(Normal(0.0, 50.0), base="start", batch=20, updates=3)},
    "auto": {"noise": Auto(batch=10)},
    "groups": {"data": GROUPS, "noise": Pooled(sets=2)},
    "adaptive groups": {"data": GROUPS, "noise": Adaptive(batch=10, updates=2)},
}


@pytest.fixture(scope="module")
def fits():
    return {name: run(**options) for name, options in FITS.items()}


EVERY = pytest.mark.parametrize("name", FITS)


def kept_at(statistics, log_odds):
    """The information kept, in the mean over statistics."""
    rho = 1 / (1 + np.exp(-log_odds))
    uncertain, shares = rho * (1 - rho), []
    for column in statistics.T:
        weights = (uncertain / uncertain.sum(), rho / rho.sum())
        kept, exact = (w @ (column - w @ column) ** 2 for w in weights)
        shares.append(uncertain.sum() / rho.sum() * kept / exact)
    return np.mean(shares)


def by_hand(posterior, noise_set, group):
    """The numbers of one row from the points, the draws and the densities in the tree."""
    tree = posterior.data
    stored, observed = tree["noise"].to_dataset(), tree["observed_data"].to_dataset()
    sets = tree["sample_stats"]["noise_set"].to_numpy()[0]
    own = observed["group"].to_numpy() == group
    rows = (stored["row_group"].to_numpy() == group) & (
        stored["row_noise_set"].to_numpy() == noise_set
    )
    x, u = observed["points"].to_numpy()[own, 0], stored["points"].to_numpy()[rows, 0]
    log_q = np.concatenate(
        [
            stored["log_density_at_data"].sel(noise_set=noise_set).to_numpy()[own],
            stored["log_density"].to_numpy()[rows],
        ]
    )
    draws = sets == noise_set
    theta = posterior.theta.sel(group=group).to_numpy()[:, draws].mean(axis=(0, 1))
    own = posterior.data["normalizer"]["contrast_log_z"]
    log_z = own.sel(group=group).to_numpy()[:, draws].mean()
    points = np.concatenate([x, u])
    statistics = np.column_stack([points, -(points**2) / 2])
    offset = np.log(len(x) / len(u)) - log_q
    log_odds = statistics @ theta - log_z + offset
    of_data, of_noise = log_odds[: len(x)], log_odds[len(x) :]
    rho = 1 / (1 + np.exp(-log_odds))
    uncertain, inverses = rho * (1 - rho), []
    every = posterior.theta.sel(group=group).to_numpy()[:, draws].reshape(-1, 2)
    heights = own.sel(group=group).to_numpy()[:, draws].ravel()
    some = np.arange(8) * len(every) // 8
    at_draws = [kept_at(statistics, statistics @ every[k] - heights[k] + offset) for k in some]
    share, typically = np.mean(at_draws), kept_at(statistics, log_odds)
    for weights in (uncertain, rho):
        centred = statistics - weights @ statistics / weights.sum()
        inverses.append(np.diag(np.linalg.inv((centred.T * weights) @ centred)))
    widths = np.sqrt(inverses[0] / inverses[1] * typically / share)
    return [
        len(u),
        np.mean(of_data[:, None] > of_noise),
        log_odds.min(),
        log_odds.max(),
        len(x) * share / (1 - share),
        share,
        widths.mean() - 1,
        widths.max() - 1,
        getattr(getattr(posterior.noises[group], "tempering", None), "log_z_error", 0.0),
    ]


@EVERY
def test_the_table_is_what_one_computes_by_hand(name, fits):
    posterior = fits[name]
    table = posterior.noise_report().table
    assert list(table.columns) == COLUMNS
    assert table.index.names == ["noise_set", "group"]
    sizes = posterior.data["noise"].sizes
    assert len(table) == sizes["noise_set"] * sizes["group"]
    for index, row in table.iterrows():
        assert row.tolist() == pytest.approx(by_hand(posterior, *index), rel=1e-7)


@EVERY
def test_a_report_survives_a_file(name, fits, tmp_path):
    posterior = fits[name]
    posterior.save(tmp_path / "fit.nc")
    one, other = posterior.noise_report(), ncb.load(tmp_path / "fit.nc").noise_report()
    assert repr(one) == repr(other)
    assert one.lines == other.lines
    for part in ("table", "updates", "candidates", "spread"):
        left, right = getattr(one, part), getattr(other, part)
        assert (left is None and right is None) or left.equals(right)


@EVERY
def test_printing_shows_words_then_tables(name, fits):
    report = fits[name].noise_report()
    text = repr(report)
    assert text == str(report)
    assert text.startswith("\n".join(report.lines))
    for column in COLUMNS:
        assert column in text
    assert ("Updates of the noise:" in text) == (report.updates is not None)
    assert ("Between noise sets:" in text) == (report.spread is not None)
    for line in report.lines:
        assert "\n" not in line
        assert line.endswith(".")


@EVERY
def test_each_kind_of_noise_has_its_parts(name, fits):
    report = fits[name].noise_report()
    assert (report.updates is not None) == name.startswith("adaptive")
    assert (report.spread is not None) == (name in ("pooled", "groups"))
    assert (report.candidates is not None) == (name == "auto")
    assert sum(line.startswith("The noise is ") and "worth" in line for line in report.lines) == 1


@pytest.mark.parametrize("name", ["fixed", "matched", "pooled", "adaptive", "auto"])
def test_the_widening_is_that_of_the_theory(name, fits):
    """At the mean; at draws it is as much more as less information is kept there.

    With several sets the theory averages over them first.
    """
    posterior = fits[name]
    table = posterior.noise_report().table
    more = []
    for k in table.index.get_level_values("noise_set"):
        problem, sets = posterior.run.problem, posterior.data["sample_stats"]["noise_set"][0]
        (each,) = problem.target(problem.source.fixed(int(k))).contrasts
        coefs = [chain.draws["coef"][sets.to_numpy() == k, 0] for chain in posterior.run.chains]
        typical = each.log_odds(np.concatenate(coefs).mean(axis=0))
        more.append(diagnostics.information_kept(each.design, typical))
    more = np.sqrt(np.mean(more) / table["information_kept"].mean())
    widths = asymptotics.observed(posterior).relative_width
    close = {"rel": 0.05} if name == "pooled" else {"rel": 1e-7}
    assert table["widening"].mean() + 1 == pytest.approx(widths.mean() * more, **close)
    assert table["worst_widening"].mean() + 1 == pytest.approx(widths.max() * more, **close)


def test_the_choice_is_told_first(fits):
    posterior = fits["auto"]
    lines = posterior.noise_report().lines
    assert lines[0] == posterior.data.attrs["noise_choice"]
    assert lines[0].startswith("Noise made of the fitted model itself, in ")
    report = posterior.noise_report()
    assert lines[1] == report.verdict
    assert report.verdict.startswith("The noise is ")
    assert report.candidates.index.name == "candidate"
    assert len(report.candidates) == report.rounds.index.get_level_values("round").max()


def test_the_spread_is_that_between_sets(fits):
    posterior = fits["pooled"]
    report = posterior.noise_report()
    spread = posterior.between_set_spread()
    assert report.spread.equals(spread)
    worst = spread["ratio"].idxmax()
    assert report.lines[-1] == (
        f"Between noise sets posterior means differ by up to {spread['ratio'][worst]:.2f} "
        f"posterior sds ({worst})."
    )


@pytest.mark.parametrize("name", ["adaptive", "adaptive groups"])
def test_updates_are_told_one_by_one(name, fits):
    posterior = fits[name]
    report, stored = posterior.noise_report(), posterior.data["adaptation"].to_dataset()
    updates = report.updates
    assert updates.index.names == ["update", "group"]
    assert len(updates) == stored["made"].size
    assert updates["made"].dtype == bool
    for column in ("alpha", "log_z", "log_z_error", "effective", "work", "kept", "kept_before"):
        np.testing.assert_array_equal(updates[column], stored[column].to_numpy().ravel())
    made = int(stored["made"].sum())
    assert f"{made} of {len(updates)} updates of the noise were made." in report.lines
    assert ("The noise is the one it started with." in report.lines) == (made == 0)
    # Far noise is left at once, in the fit without groups.
    assert made > 0 or name != "adaptive"


def altered(posterior, change):
    """A copy of the result whose tree went through ``change``."""
    tree = posterior.data.copy(deep=True)
    change(tree)
    return ncb.Posterior(tree).noise_report()


def test_an_error_of_the_noise_s_normalizer_is_told_where_it_shows(fits):
    posterior = fits["adaptive"]
    spread = float(posterior.log_z.std())

    def with_error(error):
        def change(tree):
            values = tree["noise"]["log_z_error"]
            tree["noise"]["log_z_error"] = values.copy(data=np.full(values.shape, error))
            ways = tree["normalizer"]["way"]
            tree["normalizer"]["way"] = ways.copy(data=np.full(ways.shape, "contrast"))

        return altered(posterior, change).lines

    wanted = (
        f"The normalizer of the noise has a standard error of {spread:.3f}, which log_z inherits "
        f"beyond its posterior sd of {spread:.3f}; theta does not."
    )
    assert wanted in with_error(spread)
    assert not any("The normalizer" in line for line in with_error(0.2 * spread))


@pytest.mark.parametrize(
    ("gap", "grade"), [(-9.0, "failed"), (-0.2, "fair"), (9.0, "fair"), (np.nan, "fair")]
)
def test_where_draws_are_too_far_apart_log_z_at_their_mean_tells(fits, gap, grade):
    """Mass that a contrast does not see makes its normalizer too small, never too large."""
    tree = fits["fixed"].data.copy(deep=True)
    stored = tree["normalizer"]
    stored["way"] = stored["way"].copy(data=np.full(stored["way"].shape, "contrast"))
    for name, value in (("typical_gap", gap), ("typical_error", 0.01)):
        stored[name] = stored["error"].copy(data=np.full(stored["error"].shape, value))
    found = ncb.Posterior(tree).verdict().concerns
    (concern,) = [each for each in found if each.kind == "normalizer"]
    assert concern.grade == grade
    assert ("lies 9.0 below log Z as worked out at the posterior mean" in concern.sentence) == (
        grade == "failed"
    )


def test_a_normalizer_of_the_contrast_that_is_another_is_told(fits):
    def told(gap, way="exact"):
        tree = fits["fixed"].data.copy(deep=True)
        own = tree["normalizer"]["contrast_log_z"]
        tree["normalizer"]["contrast_log_z"] = own + gap
        ways = tree["normalizer"]["way"]
        tree["normalizer"]["way"] = ways.copy(data=np.full(ways.shape, way))
        posterior = ncb.Posterior(tree)
        (concern,) = [each for each in posterior.verdict().concerns if each.kind == "normalizer"]
        return concern, posterior.noise_report()

    for gap, side in ((-9.0, "below"), (9.0, "above")):
        concern, report = told(gap)
        assert concern.grade == "failed"
        assert f"{side} log Z" in concern.line
        assert report.verdict.startswith("The fit has failed: the contrast's normalizer lies")
    concern, report = told(0.0)
    assert concern.grade == "good"
    assert not any("normalizer" in line for line in report.lines)
    assert "log Z could not be worked out" in told(-9.0, "contrast")[0].line


def test_refused_updates_are_counted(fits):
    def change(tree):
        values = tree["adaptation"]["alpha"]
        tree["adaptation"]["alpha"] = values.copy(data=np.full(values.shape, np.nan))
        tree["adaptation"]["made"] = values.copy(data=np.zeros(values.shape))
        tree["adaptation"]["reason"] = values.copy(data=np.full(values.shape, "grows"))

    report = altered(fits["adaptive"], change)
    count = len(report.updates)
    assert f"0 of {count} updates of the noise were made." in report.lines
    assert report.lines[-2].endswith(
        "refused by the guard: the model at the estimate grows without limit where the noise "
        "before is thin."
    )
    assert report.lines[-1] == "The noise is the one it started with."


def shown_with(posterior, ratio=1.0, schedule="Fixed", **numbers):
    """The verdict with other numbers in the table."""

    def change(tree):
        for name, number in numbers.items():
            values = tree["noise"][name]
            tree["noise"][name] = values.copy(data=np.full(values.shape, number))
        tree.attrs.update(noise_ratio=ratio, schedule=schedule)

    report = altered(posterior, change)
    assert report.verdict == report.lines[0]
    return report.verdict


@pytest.mark.parametrize("ratio", [1.0, 4.0, 20.0])
def test_the_verdict_is_by_how_much_wider_intervals_are(ratio, fits):
    words = {0.0: "good", 0.1: "good", 0.11: "fair", 0.25: "fair", 0.26: "poor", 1.0: "poor"}
    for widening, word in {**words, 1.01: "no use", 8.73: "no use"}.items():
        line = shown_with(fits["fixed"], ratio, widening=widening, ideal_noise=77.2)
        start = f"The noise is {word}: the 120 comparison points (noise) are worth 77 drawn from"
        assert line.startswith(start)
    more = f"; noise_ratio={2 * ratio:g} would bring them closer."
    line = shown_with(fits["fixed"], ratio, widening=0.05)
    assert line.endswith(more) == (ratio < 5)


def test_the_verdict_tells_widths(fits):
    told = "intervals are about 33 % wider than with the exact likelihood"
    line = shown_with(fits["fixed"], widening=0.331, worst_widening=0.512)
    assert f"{told} (51 % for the worst parameter);" in line
    line = shown_with(fits["fixed"], widening=0.331, worst_widening=np.nan)
    assert f"{told}; noise_ratio=2 would bring them closer" in line  # it is like the data
    line = shown_with(fits["fixed"], widening=0.331, worst_widening=np.nan, ideal_noise=50.0)
    assert f'{told}; noise="auto" may do better' in line


@pytest.mark.parametrize("widening", [0.2, 0.9])
def test_the_advice_depends_on_what_was_tried(widening, fits):
    better = 'noise="auto" may do better'
    worse = {"widening": widening, "ideal_noise": 50.0}
    assert better in shown_with(fits["fixed"], **worse)
    line = shown_with(fits["fixed"], schedule="Auto", **worse)
    assert better not in line
    assert "alpha" not in line  # which automatic noise does not have
    assert "noise_ratio=2 would bring them closer" in line
    line = shown_with(fits["fixed"], schedule="Adaptive", **worse)
    assert "a larger alpha of noise.Adaptive may help" in line


def test_noise_like_the_data_at_ratio_1_makes_intervals_wide(fits):
    report = fits["fixed"].noise_report()
    assert report.lines[0].startswith(
        "The noise is poor: the 120 comparison points (noise) are worth "
    )
    assert len(report.lines) == 1
    assert 0.4 < report.table["information_kept"].item() < 0.6
    assert abs(report.table["auc"].item() - 0.5) < 0.15


def test_noise_far_wider_than_the_data_is_fair_or_poor():
    words = []
    for variance in (1.0, 200.0, 20_000.0):
        report = run(noise=Normal(0.0, variance), prior=ncb.priors.Normal(10.0)).noise_report()
        words.append(report.lines[0].split()[3].rstrip(":"))
    assert words == ["poor", "poor", "no"]  # at ratio 1 even ideal noise costs 41 %


def test_noise_elsewhere_is_poor_and_certain():
    report = run(noise=Normal(60.0, 1.0), prior=ncb.priors.Normal(1.0)).noise_report()
    assert report.lines[0].startswith("The noise is no use: the 120 comparison points (noise) are")
    assert 'noise="auto" may do better' in report.verdict
    low, high = (report.table[f"{which}_log_odds"].item() for which in ("lowest", "highest"))
    assert max(-low, high) > reports.CERTAIN
    assert report.lines[1] == (
        f"Log odds reach from {low:.0f} to {high:.0f}: some points are data or noise for certain, "
        "and tell nothing."
    )


def test_the_worst_group_decides():
    noise = {"before": Normal(0.0, 1.0), "2": Normal(0.0, 20_000.0)}
    report = run(GROUPS, noise=noise, prior=ncb.priors.Normal(10.0)).noise_report()
    assert report.lines[0].startswith(
        "The noise is no use: the 40 comparison points (noise) in group 2"
    )
    assert report.table["information_kept"].idxmin() == (0, "2")

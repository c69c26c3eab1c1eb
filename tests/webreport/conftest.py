"""Small fits, large posteriors made from them, and a browser that loads nothing but files."""

import os
import shutil
import warnings

import numpy as np
import pytest
import xarray as xr

import ncbayes as ncb
from ncbayes import couplings, webreport
from ncbayes.contrast import statistic_names
from ncbayes.webreport import chains

# The first would end the page's data, the second start a tag, the last look like a mark of the
# template.
NODES = ("</script><script>alert(1)</script>", "<b>bold</b>", '"it\'s" & so', "@@DATA@@", "CA 3")
SHORT = {"draws": 40, "tune": 20, "chains": 2, "cores": 1, "seed": 1, "progress": False}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def fitted(fit, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return fit(*given, **options, **SHORT)


@pytest.fixture(scope="session")
def graph():
    """Five angles with awkward names, coupled more in the task than at rest."""
    model = ncb.models.TorusGraph(NODES, marginal=False)
    truth = np.zeros(len(statistic_names(model)))
    truth[::4] = np.linspace(1.2, 0, 10)
    rng = np.random.default_rng(1)
    data = {"task": model.sample(truth, 120, rng), "rest": model.sample(0.2 * truth, 120, rng)}
    # A prior that does not shrink, so that edges are of all sizes.
    return fitted(ncb.fit, model, data, noise="matched", prior=ncb.priors.Normal(1.0))


@pytest.fixture(scope="session")
def city():
    found = ncb.datasets.incidents(months=3, seed=1)
    return fitted(
        ncb.fit_density_over_time,
        found.points,
        found.times,
        domain=found.outline,
        every="month",
        basis=12,
    )


@pytest.fixture(scope="session")
def line():
    """A density of one dimension at two times."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(0.3, 0.1, 80), rng.normal(0.6, 0.1, 80)])[:, None]
    times = np.repeat([1, 2], 80)
    return fitted(
        ncb.fit_density_over_time,
        np.clip(points, 0, 1),
        times,
        domain=ncb.spaces.Box([0.0], [1.0]),
        basis=6,
    )


@pytest.fixture(scope="session")
def angles():
    """A model that is neither a graph nor a density on a map."""
    model = ncb.models.VonMises()
    data = model.sample(np.array([1.5, 1.0]), 100, np.random.default_rng(1))
    return fitted(ncb.fit, model, data, noise="matched")


def replaced(before, **groups):
    """A posterior with other groups of its tree."""
    kept = {name: child.to_dataset() for name, child in before.data.children.items()}
    tree = xr.DataTree.from_dict({**kept, **groups})
    tree.attrs = before.data.attrs
    return ncb.Posterior(tree)


@pytest.fixture(scope="session")
def hundred(angles):
    """Draws of a torus graph of 100 nodes and 4950 edges, a tenth of them strong."""
    model, rng = ncb.models.TorusGraph(100, marginal=False), np.random.default_rng(1)
    own = couplings.graph_of(model)
    theta = 0.1 * rng.normal(size=(2, 40, 1, len(statistic_names(model))))
    # Communities of ten, so that a layout has something to find.
    near = own.ends[:, 0] // 10 == own.ends[:, 1] // 10
    theta[..., own.columns[near].ravel()] += 0.8
    names = statistic_names(model)
    draws = xr.Dataset(
        {"theta": (("chain", "draw", "group", "statistic"), theta)},
        coords={
            "chain": [0, 1],
            "draw": np.arange(40),
            "group": ["all"],
            "statistic": names,
            "block": ("statistic", np.repeat("edge", len(names))),
        },
    )
    draws["log_z"] = angles.data["posterior"]["log_z"]
    return replaced(angles, posterior=draws, graph=own.dataset())


def repeated(city, months, kept):
    """The city over so many months: the draws of three, over and over, with some drift."""
    labels = [str(np.datetime64("2020-01", "M") + k) for k in range(months)]
    few = city.data["posterior"].to_dataset()[["theta", "log_z"]].isel(draw=slice(kept))
    draws = few.isel(group=np.arange(months) % 3).assign_coords(group=labels)
    draws["theta"] = draws["theta"] * xr.DataArray(np.linspace(1, 1.2, months), dims="group")
    field = city.data["field"].to_dataset().drop_dims("group")
    field["time"] = ("group", np.array(labels, dtype="datetime64[ns]"))
    stats = city.data["sample_stats"].to_dataset().isel(draw=slice(kept))
    return replaced(city, posterior=draws, field=field, sample_stats=stats)


@pytest.fixture(scope="session")
def sixty(city):
    return repeated(city, 60, 10)


@pytest.fixture(scope="session")
def four_hundred(city):
    # The time is spent on integrals, one a draw and month.
    return repeated(city, 400, 4)


@pytest.fixture(scope="session")
def failed():
    """Angles around one direction, with a tenth of them anywhere: noise covers too little."""
    rng = np.random.default_rng(1)
    common = rng.vonmises(0, 15, 300)[:, None]
    x = common + rng.vonmises(0, 15, (300, 6)) + np.linspace(-1, 1, 6)
    x[:30] = rng.uniform(0, 2 * np.pi, (30, 6))
    options = {**SHORT, "draws": 200, "tune": 200, "chains": 4}
    with pytest.warns(ncb.FitWarning) as told:
        posterior = ncb.fit(ncb.models.TorusGraph(6), x % (2 * np.pi), noise="matched", **options)
    assert any("log Z as worked out" in str(each.message) for each in told)
    return posterior


@pytest.fixture(scope="session")
def unverified():
    """A fit that did not look at itself."""
    data = np.random.default_rng(1).normal(size=(100, 2))
    return fitted(ncb.fit, ncb.models.Gaussian(2), data, noise="matched", verify=False)


@pytest.fixture(scope="session")
def pooled():
    """Two noise sets for the same 60 rows."""
    model = ncb.models.VonMises()
    data = model.sample(np.array([1.5, 1.0]), 60, np.random.default_rng(1))
    return fitted(ncb.fit, model, data, noise=ncb.noise.Pooled(sets=2))


@pytest.fixture(scope="session")
def both(graph, city):
    """Two fits of one page, by name."""
    return {"<b>Regions</b> & tasks": graph, "A city": city}


@pytest.fixture(scope="session")
def pages(tmp_path_factory, request):
    """The report of the fixture of this name, written when first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def page(name):
        file = folder / f"{name}.html"
        if not file.exists():
            posterior = request.getfixturevalue(name)
            command = "ncbayes fit RUN/run.toml"
            named = posterior if isinstance(posterior, dict) else ()
            commands = {each: f"{command}  # {each}" for each in named}
            with pytest.MonkeyPatch.context() as patch:
                # Milliseconds a quantity, of which the large ones have thousands.
                patch.setattr(chains, "MOST_MEASURED", 200)
                webreport.write(posterior, file, repeat=commands or command)
        return file

    return page


@pytest.fixture(scope="session")
def chromium():
    """The browser of the system; it may be missing on a laptop, and never where CI is set."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None and not os.environ.get("CI"):
        pytest.skip("there is no Chromium here: apt-get install chromium")
    assert found, "there is no Chromium, and CI must test the report in one"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, pages):
    """Opens a report; fails at the end if the page asked for a file, or an error was logged."""
    contexts, troubles = [], []

    def only_files(route):
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            troubles.append(f"asked for {route.request.url}")
            route.abort()

    def open_page(name, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.route("**/*", only_files)
        page.on("console", lambda line: troubles.append(line.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto((pages(name) if isinstance(name, str) else name).as_uri())
        return page

    open_page.troubles = troubles
    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []

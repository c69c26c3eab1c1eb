"""Makes the pictures of docs/report.md: python docs/make_report_pictures.py [folder [names]]."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Browser, Page, sync_playwright

import ncbayes as ncb

SHORT = {"chains": 2, "cores": 1, "seed": 1, "progress": False}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = (1280, 860), (360, 760)


def wind() -> ncb.Posterior:
    """Twelve wind directions, with a prior that lets strong couplings be strong."""
    found = ncb.datasets.wind()
    graph, prior = ncb.models.TorusGraph(found.columns), ncb.priors.Horseshoe(slab=5.0)
    return ncb.fit(graph, found.data, prior=prior, draws=1000, tune=500, **SHORT)


def city() -> ncb.Posterior:
    """A year of incidents in the made-up city."""
    found = ncb.datasets.incidents(seed=1)
    return ncb.fit_density_over_time(
        found.points, found.times, domain=found.outline, every="month", draws=300, tune=200, **SHORT
    )


def fish() -> ncb.Posterior:
    """Made-up lengths of fish in five years: the large ones become fewer."""
    rng = np.random.default_rng(1)
    years = np.repeat(np.arange(2020, 2025), 200)
    large = rng.random(len(years)) < np.linspace(0.6, 0.2, 5)[years - 2020]
    length = np.where(large, rng.normal(42, 5, len(years)), rng.normal(20, 4, len(years)))
    points = pd.DataFrame({"length (cm)": np.clip(length, 0, 60)})
    domain = ncb.spaces.Box([0.0], [60.0])
    return ncb.fit_density_over_time(
        points, years, domain=domain, basis=12, draws=1000, tune=500, **SHORT
    )


def gaussian() -> ncb.Posterior:
    """Three columns, of which the first two depend on each other."""
    precision = np.array([[1.5, -0.7, 0.0], [-0.7, 1.5, 0.3], [0.0, 0.3, 1.0]])
    rng = np.random.default_rng(1)
    data = rng.multivariate_normal([0.5, 0.0, -0.5], np.linalg.inv(precision), 400)
    return ncb.fit(ncb.models.Gaussian(3), data, draws=2000, tune=500, **SHORT)


def opened(browser: Browser, file: Path, size: tuple[int, int]) -> Page:
    """The page in a window of this size."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(file.as_uri())
    return page


def network(page: Page) -> None:
    """The interval rule, and the second strongest edge in the panel."""
    page.get_by_label("90 % interval").check()
    page.locator("#network").focus()
    page.keyboard.press("ArrowRight")


def change(page: Page) -> None:
    """The change over the year, read where the density of the last month is highest."""
    page.get_by_label("change", exact=True).check()
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")


def curve(page: Page) -> None:
    """The last year, read a third of the way along the axis."""
    page.locator("#time").press("End")
    page.locator("#curve").focus()
    for _ in range(67):
        page.keyboard.press("ArrowRight")


def table(page: Page) -> None:
    """Some of the parameters, by their name."""
    page.get_by_label("Find a parameter").fill("x1")


def main(folder: Path, only: list[str]) -> None:
    """Write the pictures, or only those of these names, into the folder."""
    warnings.simplefilter("ignore", ncb.FitWarning)
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        both = ((DESK, ""), (PHONE, "_phone"))
        for name, title, fit, act, sizes in (
            ("network", "Wind directions at three airports", wind, network, both),
            ("map", "Incidents in a made-up city", city, change, both),
            ("curve", "Lengths of made-up fish", fish, curve, both[:1]),
            ("table", "Three columns of real numbers", gaussian, table, both[:1]),
        ):
            if only and name not in only:
                continue
            file = Path(place) / f"{name}.html"
            command = "ncbayes fit run/run.toml"
            ncb.webreport.write(fit(), file, title=title, repeat=command)
            for size, end in sizes:
                page = opened(browser, file, size)
                act(page)
                page.locator(".controls").first.evaluate("each => each.scrollIntoView()")
                page.screenshot(path=folder / f"report_{name}{end}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "images", sys.argv[2:])

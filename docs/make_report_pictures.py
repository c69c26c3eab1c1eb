"""Makes the pictures of docs/report.md: python docs/make_report_pictures.py [folder]."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from pathlib import Path

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


def main(folder: Path) -> None:
    """Write the pictures into the folder."""
    warnings.simplefilter("ignore", ncb.FitWarning)
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        for name, title, fit, act in (
            ("network", "Wind directions at three airports", wind, network),
            ("map", "Incidents in a made-up city", city, change),
        ):
            file = Path(place) / f"{name}.html"
            command = "ncbayes fit run/run.toml"
            ncb.webreport.write(fit(), file, title=title, repeat=command)
            for size, end in ((DESK, ""), (PHONE, "_phone")):
                page = opened(browser, file, size)
                act(page)
                page.locator(".controls").first.evaluate("each => each.scrollIntoView()")
                page.screenshot(path=folder / f"report_{name}{end}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "images")

"""The command ``ncbayes``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncbayes import __version__

app = typer.Typer(
    help="Bayesian inference for models whose normalizing constant nobody can compute.",
    no_args_is_help=True,
    add_completion=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ncbayes {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian inference for models whose normalizing constant nobody can compute."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the posterior.")] = Path(
        "ncbayes-demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the fit.")] = 1,
    draws: Annotated[int, typer.Option(min=100, help="Kept draws a chain.")] = 1000,
) -> None:
    """Fit simulated angles and compare with the truth: a summary, two pictures, one netCDF file."""
    import matplotlib

    matplotlib.use("agg")
    import numpy as np

    import ncbayes as ncb
    from ncbayes import plots

    model, truth = ncb.models.VonMises(), np.array([1.5, 1.0])
    angles = model.sample(truth, 300, np.random.default_rng(seed))
    typer.echo("Simulating 300 angles from a von Mises distribution and fitting it,")
    typer.echo("pretending that its normalizing constant could not be computed ...")
    posterior = ncb.fit(model, angles, noise_ratio=10, draws=draws, seed=seed)
    table = posterior.summary(level=0.9)
    table.insert(0, "truth", [*truth, model.log_partition(truth)])
    columns = ["truth", "mean", "sd", "eti90_low", "eti90_high", "ess_bulk", "r_hat"]
    typer.echo("\n" + table[columns].round(3).to_string() + "\n")
    out.mkdir(parents=True, exist_ok=True)
    posterior.save(out / "posterior.nc")
    plots.density(posterior, model, truth=truth).savefig(out / "density.png", dpi=150)
    plots.trace(posterior).savefig(out / "trace.png", dpi=150)
    typer.echo(f"Wrote density.png, trace.png and posterior.nc to {out}/")

"""The network of wind directions at the airports of New York (docs/torus_graphs.md).

    python studies/wind.py [--draws 10000] [--cores 2] [--checkpoint folder] [--out network.png]

A torus graph of twelve angles, three airports at four times of the day, with the horseshoe prior:
with its default slab of 1, which is too tight for couplings as strong as these, and with a slab
of 5. For each it prints how chains, noise and replicated data did, the edges that the 90 %
interval rule selects, and how edges split by hour and airport; the picture is of the second.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import pandas as pd

import ncbayes as ncb

OUT = Path(__file__).parents[1] / "docs" / "images" / "wind_network.png"
SLABS = (1.0, 5.0)
RULE = {"rule": "interval", "level": 0.9, "threshold": 0.5}


def kind(one: str, other: str) -> str:
    """How two columns such as "EWR 00Z" are related."""
    hours = abs(int(one[4:6]) - int(other[4:6]))
    place = "same airport" if one[:3] == other[:3] else "other airport"
    return f"{hours:2d} h apart, {place}"


def by_kind(edges: pd.DataFrame) -> pd.DataFrame:
    """How many edges of each kind the rule selects, and how strong all of them are."""
    kinds = [kind(*pair) for pair in zip(edges["node1"], edges["node2"], strict=True)]
    grouped = edges.groupby(kinds)
    return pd.DataFrame(
        {
            "possible": grouped.size(),
            "selected": grouped["selected"].sum(),
            "mean strength": grouped["strength"].mean().round(2),
            "mean probability": grouped["probability"].mean().round(2),
        }
    )


def report(posterior: ncb.Posterior, model: ncb.models.TorusGraph, data: object) -> None:
    """Print what there is to know."""
    scales = posterior.data["posterior"]
    print(f"{posterior}, {posterior.data.attrs['wall_seconds']:.0f} seconds")
    print("\n".join([*posterior.warning_lines(), *posterior.noise_report().lines]))
    print(f"median of tau: {float(scales['theta.tau'].median()):.2f}")
    check = ncb.predictive.check_angles(posterior, model, data, seed=1)
    locking = check.table[check.table["statistic"] == "phase_locking"]
    print(check.summary().round(3))
    print(f"mean phase locking: {locking[['observed', 'replicated']].mean().round(2).to_dict()}")
    edges = ncb.graphs.edges(posterior, **RULE)
    lags = ncb.graphs.phase_difference(posterior).set_index(["node1", "node2"])
    shown = edges[edges["selected"]].set_index(["node1", "node2"])
    shown = shown[["strength", "norm", "probability"]].join(
        lags[["angle", "angle_low", "angle_high", "concentration"]]
    )
    print(shown.round(2).to_string())
    print(f"expected share of false edges: {edges.attrs['expected_fdr']:.3f}")
    print(by_kind(edges).to_string())
    median = ncb.graphs.edges(posterior)["selected"].sum()
    print(f"the median rule with its threshold of 0.1 selects {median} of {len(edges)}\n")


def main(draws: int, cores: int | None, checkpoint: str | None, out: Path) -> None:
    """Fit, print and draw."""
    mpl.use("agg")
    wind = ncb.datasets.wind()
    model = ncb.models.TorusGraph(wind.columns)
    hours = {column: f"{column[4:6]} h UTC" for column in wind.columns}
    for slab in SLABS:
        posterior = ncb.fit(
            model,
            wind.data,
            prior=ncb.priors.Horseshoe(slab=slab),
            seed=1,
            draws=draws,
            cores=cores,
            checkpoint=None if checkpoint is None else f"{checkpoint}_{slab:g}",
        )
        print(f"slab = {slab:g}")
        report(posterior, model, wind.data)
        ncb.plots.network(posterior, regions=hours, **RULE).savefig(out, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--checkpoint")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    main(arguments.draws, arguments.cores, arguments.checkpoint, arguments.out)

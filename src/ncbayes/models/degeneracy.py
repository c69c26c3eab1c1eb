"""Random graphs gone wrong: data or simulations at the ends of what a graph can be, by name."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ncbayes.base import FloatArray, shown
from ncbayes.models.terms import Dyads, Term
from ncbayes.spaces import Graphs

# A graph with all dyads alike but this share of them is nearly empty or complete...
NEARLY = 0.01
# ...and a model with so many such graphs is degenerate.
MOST_EXTREME = 0.5


class DegenerateWarning(UserWarning):
    """Nearly all graphs of a model are empty or complete; the message says what to do."""


class GraphModel(Protocol):
    """What is asked of a model here."""

    @property
    def space(self) -> Graphs: ...

    @property
    def terms(self) -> tuple[Term, ...]: ...

    def statistics(self, x: FloatArray) -> FloatArray: ...


def degenerate_line(model: GraphModel, theta: FloatArray, x: FloatArray) -> str:
    """What to say of a theta at which the model drew the graphs x; "" if nothing."""
    if not len(x):
        return ""
    density = x.mean(axis=1)
    shares = {"empty": np.mean(density <= NEARLY), "complete": np.mean(density >= 1 - NEARLY)}
    total = float(sum(shares.values()))
    if total < MOST_EXTREME:
        return ""
    end = max(shares, key=lambda name: float(shares[name]))
    extreme = np.full((1, model.space.dimension), float(end == "complete"))
    usual = model.space.uniform(50, np.random.default_rng(0))
    gain = theta * (model.statistics(extreme)[0] - model.statistics(usual).mean(axis=0))
    t = int(np.argmax(gain))
    name, value = model.terms[t].name, float(theta[t])
    if isinstance(model.terms[t], Dyads):
        remedy = "check the density of the graphs, or give it a prior nearer to 0"
    else:
        remedy = (
            "replace it by a geometrically weighted term, models.terms.gwesp(0.5) or "
            "gwdegree(0.5), or give it a prior nearer to 0"
        )
    both = " or ".join(key for key, share in shares.items() if share > 0)
    return (
        f"degenerate: {100 * total:.0f} % of the graphs simulated at theta are nearly {both}, "
        f"because of {shown(name)} (theta {value:.3g}); {remedy}"
    )


def data_lines(model: GraphModel, x: FloatArray) -> list[str]:
    """What to say of data whose statistics lie at an end of their range in every graph."""
    if x.any() and not x.all():
        values, full = model.statistics(x), model.statistics(np.ones((1, x.shape[1])))[0]
        ends = [(t, value) for t in range(len(full)) if (value := _end(values[:, t], full[t]))]
        return [
            f"the count of {shown(model.terms[t].name)} is {value} in every graph, so the data do "
            "not bound its theta and the prior does; leave the term out, or give it a prior that "
            "you believe"
            for t, value in ends
        ]
    return [
        f"all graphs are {'complete' if x.any() else 'empty'}: theta rests on its prior; look at "
        "how edges were found in the data"
    ]


def _end(values: FloatArray, full: float) -> str:
    """The end of its range at which a count always is, in words; "" if it is not."""
    if not values.any():
        return "0"
    # Counts that fall again in dense graphs, such as isolates, have another largest value.
    return "the largest possible" if full > 0 and np.all(values == full) else ""

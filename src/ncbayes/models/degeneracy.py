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
# A term with this share of the largest weight counts as the cause.
FOLLOWED = 0.25
# Nodes, over all graphs, from which on equal degrees are no accident.
FEWEST_NODES = 30


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
    if sum(shares.values()) < MOST_EXTREME:
        return ""
    term = _at_fault(model, theta)
    both = " or ".join(key for key, share in shares.items() if share > 0)
    # No numbers, so that a loop over draws warns once.
    return (
        f"degenerate: most graphs simulated at theta are nearly {both}, because of "
        f"{shown(term.name)}; {_remedy(term)}"
    )


def _at_fault(model: GraphModel, theta: FloatArray) -> Term:
    """The term that makes most of the difference between the empty and the complete graph.

    One that ties dyads together, unless those of single dyads weigh far more: they follow it.
    """
    ends = np.array([np.zeros(model.space.dimension), np.ones(model.space.dimension)])
    weight = np.abs(theta * np.diff(model.statistics(ends), axis=0)[0])
    tied = np.array([not isinstance(term, Dyads) for term in model.terms])
    most = int(np.argmax(np.where(tied, weight, -1.0)))
    if weight[most] < FOLLOWED * weight.max():
        most = int(np.argmax(weight))
    return model.terms[most]


def _remedy(term: Term) -> str:
    if isinstance(term, Dyads):
        return "look at the density of the graphs, or give it a prior nearer to 0"
    if getattr(term, "curve", "") == "geometric":
        return (
            "lower its decay, let nodes differ (models.terms.sociality), or give it a prior nearer "
            "to 0"
        )
    return (
        "replace it by a geometrically weighted term, models.terms.gwesp(0.5) or gwdegree(0.5), or "
        "give it a prior nearer to 0"
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


def fixed_choice_lines(adjacency: FloatArray, directed: bool) -> list[str]:
    """What to say of graphs (graph, node, node) in which every node names so many others.

    Not of graphs in which all or none of the ties are there, of which other lines tell.
    """
    degrees = adjacency.sum(axis=2)
    count = int(degrees.flat[0])
    if np.ptp(degrees) > 0 or not 0 < count < adjacency.shape[1] - 1 or degrees.size < FEWEST_NODES:
        return []
    ties = "out-ties" if directed else "ties"
    return [
        f"every node has {count} {ties} in every graph, as where people were asked for {count} "
        "names: the model does not know of that and counts graphs that were impossible, so theta "
        "of edges, reciprocity and shared partners do not mean what they say; ask for any number "
        "of names, or look at who was named by models of choice"
    ]


def _end(values: FloatArray, full: float) -> str:
    """The end of its range at which a count always is, in words; "" if it is not."""
    if not values.any():
        return "0"
    # Counts that fall again in dense graphs, such as isolates, have another largest value.
    return "the largest possible" if full > 0 and np.all(values == full) else ""

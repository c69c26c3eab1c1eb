"""Is a run fine? What its fit saw of itself, and, with a seed, predictions looked at again."""

from __future__ import annotations

from typing import Any

from ncbayes import predictive
from ncbayes.base import InputError
from ncbayes.cli.terminal import spoken
from ncbayes.concerns import SIDES, Concern, Verdict, worst
from ncbayes.posterior import Posterior


def looked_at(
    posterior: Posterior, model: Any, why_not: str, seed: int | None
) -> tuple[Posterior, str]:
    """The posterior with predictions looked at, again if there is a seed, and why not if not.

    ``why_not``: why there is no model, if there is none.
    """
    density = "field" in posterior.data.children
    if model is None and not density:
        return posterior, why_not
    try:
        return predictive.verify(posterior, model, seed or 0), ""
    except InputError as impossible:
        return posterior, str(impossible)


def document(found: Verdict, run: str | None, why_not: str) -> dict[str, Any]:
    """The verdict for machines; ``run`` is the folder of the run, if there is one."""
    sides = {
        side: {
            "grade": worst(found.of(side)),
            "lines": [spoken(each.sentence, run) for each in found.of(side)],
            "facts": [{"kind": each.kind, "grade": each.grade, **each.facts}
                      for each in found.of(side)],
        }
        for side in SIDES
    }  # fmt: skip
    return {
        "fine": found.usable,
        "grade": found.grade,
        "verdict": spoken(found.line, run),
        "next": spoken(found.next_step, run),
        "not_looked_at": why_not,
        **sides,
    }


def lines(found: Verdict, run: str | None, why_not: str) -> list[tuple[str, list[str]]]:
    """Headlines with the sentences below them, in the words of the command."""
    first = [spoken(found.line, run)]
    if found.next_step:
        first.append(f"Next: {spoken(found.next_step, run)}.")
    told = [("", first)]
    for side in SIDES:
        own = found.of(side)
        if own:
            told.append((f"{side}: {worst(own)}", [_sentence(each, run) for each in own]))
    if why_not:
        told.append(("predictions: not looked at", [f"{why_not}."]))
    return told


def _sentence(concern: Concern, run: str | None) -> str:
    words = spoken(concern.sentence, run)
    return f"{words[:1].upper()}{words[1:]}."

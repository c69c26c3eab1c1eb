"""The verdict on a fit as the page shows it: one line, boxes by side, and what a failure means."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ncbayes import diagnosis, diagnostics, mixing
from ncbayes.concerns import SIDES, Concern, Verdict, worst
from ncbayes.reports import NoiseReport
from ncbayes.webreport.chains import Quantity
from ncbayes.webreport.heads import NOISE

if TYPE_CHECKING:
    import xarray as xr

NAMES = {
    "convergence": "Convergence",
    "noise": NOISE,
    "verification": "Verification",
    "predictions": "Predictions",
    "data": "Data",
}
NOISE_HINT = (
    "Noise means comparison points here: points that were made up, for the model to tell from the "
    "data. It does not mean errors in the data."
)


def verdict(tree: xr.DataTree, found: list[Quantity], total: int) -> Verdict:
    """``posterior.verdict()`` with the effective draws and R-hats that were measured already."""
    return Verdict(tuple(diagnosis.concerns(tree, _convergence(tree, found, total))))


def _convergence(tree: xr.DataTree, found: list[Quantity], total: int) -> Iterator[Concern]:
    if not found:
        return
    names = diagnostics.plain_names(tree)
    rows = [(names.get(each.name, each.name), each.bulk, each.tail, each.r_hat) for each in found]
    sizes = tree["posterior"].sizes
    concern = mixing.graded_convergence(rows, sizes["chain"], sizes["draw"])
    if concern.facts.get("above") and diagnostics.mode_kind(tree) is not None:
        yield from mixing.convergence(tree)
        return
    if total > len(found):
        few = f"measured were the {len(found)} of {total} quantities whose chains look worst"
        concern = dataclasses.replace(concern, line=f"{concern.line} ({few})")
    yield concern


def headline(found: Verdict) -> dict[str, Any]:
    """The line at the top of the page, the next step, and a word on noise where they name it."""
    following = sentence(found.next_step) if found.next_step else ""
    hint = NOISE_HINT if "noise" in f"{found.line} {following}" else ""
    return {"grade": found.grade, "line": found.line, "next": following, "hint": hint}


def failure(found: Verdict) -> str:
    """What stands above every result of a failed fit; "" if the fit has not failed."""
    if found.grade != "failed":
        return ""
    return sentence(f"The fit has failed, do not use what is shown here: {found.reason}")


def boxes(found: Verdict, report: NoiseReport, again: str = "") -> list[dict[str, Any]]:
    """One box for each side: its name, grade and sentences, and more on the noise.

    ``again`` is how to get more draws where there are too few, for those who only have the page.
    """
    made = []
    for side in SIDES:
        concerns = found.of(side)
        lines = _sentences(concerns)
        grade, more = worst(concerns), []
        if side == "noise":
            more = _more(found, report)
            if not concerns:
                lines, more = [report.verdict], []
        if side == "convergence" and grade in ("poor", "failed") and again:
            lines.append(again)
        if lines:
            made.append({"name": NAMES[side], "grade": grade, "lines": lines, "more": more})
    return made


def _sentences(concerns: Sequence[Concern]) -> list[str]:
    """One sentence for each concern; what to do is said once."""
    said: set[str] = set()
    lines = []
    for each in concerns:
        lines.append(sentence(each.line if each.remedy in said else each.sentence))
        said.add(each.remedy)
    return lines


def _more(found: Verdict, report: NoiseReport) -> list[str]:
    """Lines of the report that no concern has said."""
    said = [each.line.lower() for each in found.concerns]
    return [line for line in report.lines if not any(each in line.lower() for each in said)]


def more_draws(found: Verdict, draws: int) -> str:
    """How to fit again with enough draws, or "" if there are enough."""
    wanted = max((each.facts.get("more_draws", 0) for each in found.of("convergence")), default=0)
    if not wanted:
        return ""
    return f"To fit again: draws={draws + wanted}, on the command line --draws {draws + wanted}."


def sentence(words: str) -> str:
    """Words with a capital letter and a full stop; names such as log_z stay as they are.

    >>> sentence("log_z is off"), sentence("the chains agree")
    ('log_z is off.', 'The chains agree.')
    """
    words = words.strip().removesuffix(".")
    first, *_ = words.split(maxsplit=1) or [""]
    if first.isalpha():
        words = words[0].upper() + words[1:]
    return f"{words}."

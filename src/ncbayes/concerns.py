"""What there is to say about a fit, as data: concerns with grades, and one verdict over them.

Grades, by numbers:

=======  ==========================================================================================
good     intervals up to 10 % wider than exact; nothing speaks against the answer
fair     up to 25 % wider; something is worth knowing, and nothing has to be done
poor     more; something needs attention: chains, noise, or a model that does not fit the data
failed   more than 100 %, log Z off by 3 standard deviations, or mass where there are neither data
         nor noise: the answer is not to be used
=======  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Grade = Literal["good", "fair", "poor", "failed"]
GRADES: tuple[Grade, ...] = ("good", "fair", "poor", "failed")
# Sides of a fit, in the order in which they are told.
SIDES = ("convergence", "noise", "verification", "predictions", "data")


@dataclass(frozen=True)
class Concern:
    """One thing that was looked at: its kind and side, how it came out, and the numbers.

    ``line`` says it in one sentence, ``short`` in a few words; ``remedy`` is what to do, "" if
    nothing.
    """

    kind: str
    side: str
    grade: Grade
    line: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    short: str = ""

    @property
    def sentence(self) -> str:
        """Line and remedy together."""
        return f"{self.line}; {self.remedy}" if self.remedy else self.line


def worst(concerns: Sequence[Concern]) -> Grade:
    """The worst grade among them; good if there are none."""
    return max((each.grade for each in concerns), key=GRADES.index, default="good")


def alarms(concerns: Sequence[Concern]) -> list[Concern]:
    """Those that a fit warns of, the worst first: poor and failed ones.

    Intervals that are poor because of noise are wide, and right: that is told, not warned of.
    """
    poor = [each for each in concerns if each.grade == "poor" and each.kind != "noise"]
    chosen = [each for each in concerns if each.grade == "failed"] + poor
    return sorted(chosen, key=lambda each: -GRADES.index(each.grade))


_SUMMARIES: dict[Grade, str] = {
    "good": "The answer can be used",
    "fair": "The answer can be used, with care",
    "poor": "The answer needs attention before it is used",
    "failed": "The fit has failed, do not use its answer",
}


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether an answer can be used, how sure that is, and the one thing to do next.

    ``concerns`` are all that was looked at, ``grade`` is the worst of them.
    """

    concerns: tuple[Concern, ...]

    @property
    def grade(self) -> Grade:
        return worst(self.concerns)

    @property
    def usable(self) -> bool:
        """Whether nothing needs attention."""
        return self.grade in ("good", "fair")

    @property
    def line(self) -> str:
        """One line: the verdict, and why."""
        return f"{_SUMMARIES[self.grade]}: {self.reason}."

    @property
    def reason(self) -> str:
        """What the grade rests on."""
        chosen = [each for each in self.concerns if each.grade == self.grade]
        if self.grade == "good":
            return "; ".join(_short(each) for each in chosen) or "nothing speaks against it"
        more = f" (and {len(chosen) - 1} more)" if len(chosen) > 1 else ""
        return _short(chosen[0]) + more

    @property
    def next_step(self) -> str:
        """The one thing to do; "" if there is nothing to do."""
        for grade in reversed(GRADES[1:]):
            for each in self.concerns:
                if each.grade == grade and each.remedy:
                    return each.remedy
        return ""

    def of(self, side: str) -> tuple[Concern, ...]:
        """Those of one side: "convergence", "noise", "verification", "predictions", "data"."""
        return tuple(each for each in self.concerns if each.side == side)

    def __repr__(self) -> str:
        lines = [self.line]
        if self.next_step:
            lines.append(f"Next: {self.next_step}.")
        for side in SIDES:
            own = self.of(side)
            if own:
                lines += ["", f"{side}: {worst(own)}"]
                lines += [f"  {each.sentence}." for each in own]
        return "\n".join(lines)


def _short(concern: Concern) -> str:
    return concern.short or concern.line

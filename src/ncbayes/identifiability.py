"""Can data and noise tell the statistics apart, and if not, does the prior?

A combination of statistics that is constant over all points has no likelihood: along it the
posterior is the prior. With a proper prior that is a posterior, and worth a warning; with one that
is flat along the combination there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from ncbayes.base import FloatArray, InputError, Precision, in_group
from ncbayes.contrast import Contrast, model_name, statistic_names
from ncbayes.priors import Normal
from ncbayes.priors.blocks import NORMALIZER, Blocks, blocks
from ncbayes.problem import Problem

# A statistic whose part not explained by the others has less variance than this share of its own
# cannot be told from a linear combination of them in double precision.
COLLINEAR = 1e-10
# The check forms the statistics and their Gram matrix; beyond these numbers of statistics, and of
# statistics times points (0.8 GB), that is too long to wait.
MOST_CHECKED = 3000
MOST_CHECKED_ENTRIES = 1e8
# Below this share of the largest, the prior's precision along a combination is none.
FLAT = 1e-12
# Names that one sentence lists.
MOST_LISTED = 5
# More noise, by which it is seen whether more noise would help; and points that it has at most.
MORE_NOISE, MOST_MORE = 10, 5000


@dataclass(frozen=True, eq=False)
class Unseen:
    """Statistics that points do not tell apart from a constant, or from others.

    ``directions`` (k, p): combinations of theta on which the log odds at the points do not depend.
    """

    constant: NDArray[np.intp]
    extra: NDArray[np.intp]
    partners: NDArray[np.intp]
    directions: FloatArray


def couples_groups(model: Any, prior: Any, groups: int, normalizer: bool = True) -> bool:
    """Whether a prior ties all of theta of several groups together.

    By steps from group to group (``between``), or by a population.
    """
    if groups < 2 or prior is None:
        return False
    full = blocks(prior, model.groups, lambda start, stop: Normal(1.0), model, normalizer)
    full.check(groups)
    rng = np.random.default_rng(0)
    for part in full.parts:
        shape = groups, part.stop - part.start
        if part.name == NORMALIZER or hasattr(part.prior, "hidden"):
            continue
        if part.prior.gaussian(part.prior.draw(shape, rng), shape)[0].between is None:
            return False
    return True


def is_proper(precision: Precision) -> bool:
    """Whether a prior of this precision has a scale in every direction."""
    within, between = precision.within, precision.between
    # Group by group, what is left of a group's precision once those before it are integrated out.
    left = np.zeros_like(within[0])
    for g, here in enumerate(within):
        diagonal = here if here.ndim == 1 else np.diag(here)
        if g > 0 and between is not None:
            step = between[g - 1]
            if here.ndim == 1:
                here = here - step**2 / left
            else:
                here = here - step[:, None] * np.linalg.solve(left, np.diag(step))
        left = here
        low = left if left.ndim == 1 else np.linalg.eigvalsh(left)
        if not (diagonal > 0).all() or not (low > FLAT * diagonal.max()).all():
            return False
    return True


def check_posterior_exists(problem: Problem, contrasts: Sequence[Contrast]) -> None:
    """Refuse a prior that is flat along what the points of a group do not see.

    Of all groups together where the prior couples them.
    """
    precision, names = _theta_precision(problem), statistic_names(problem.model)
    if (_diagonal(precision.within) > 0).all() and precision.between is None:
        return
    for label, where, part in _parts(problem, contrasts, precision):
        unseen = _unseen(part, len(names), always=True)
        if unseen is None or _holds(unseen.directions, where):
            continue
        with in_group(label, len(problem.labels) if precision.between is None else 1):
            raise InputError(
                f"{_words(unseen, names, problem.model)}, and the prior is flat there, so that "
                "there is no posterior: give these statistics a prior of known scale, such as "
                "ncbayes.priors.Normal(1.0), or leave them out of the model"
            )


def unseen_lines(problem: Problem, noise_ratio: float, prior: Any) -> list[str]:
    """What data and noise do not tell apart, one line for all groups that share it.

    Of statistics that all have a ``prior`` of the user's, only those that are constant: along a
    combination of others such a prior speaks, as it is meant to.
    """
    mapped = isinstance(prior, Mapping)
    given = set(problem.model.groups) <= set(prior) if mapped else prior is not None
    raw = replace(problem, center=None)
    if hasattr(problem.model, "curve") or not _is_small(raw):
        return []
    names, precision = statistic_names(problem.model), _theta_precision(problem)
    contrasts = raw.target(problem.source.fixed(0)).contrasts
    found: dict[str, list[str]] = {}
    for label, _, part in _parts(problem, contrasts, precision):
        unseen = _unseen(part, len(names))
        if unseen is not None and (len(unseen.constant) or not given):
            found.setdefault(_words(unseen, names, problem.model), []).append(label)
    if not found:
        return []
    cure = _cure(raw, precision, noise_ratio)
    many = len(problem.labels) > 1 and precision.between is None
    return [
        f"{_in_groups(labels) if many else ''}{words}; {cure}" for words, labels in found.items()
    ]


def _cure(problem: Problem, precision: Precision, noise_ratio: float) -> str:
    """What helps: more noise, if it does when it is tried, and a prior of known scale."""
    prior = "a prior of known scale, such as prior=ncbayes.priors.Normal(1.0)"
    sizes = tuple(min(MORE_NOISE * size, max(MOST_MORE, size)) for size in problem.source.sizes)
    more = problem.against(problem.source.noises, sizes)
    count = len(statistic_names(problem.model))
    contrasts = more.target(more.source.fixed(0)).contrasts
    if all(_unseen(part, count) is None for _, _, part in _parts(more, contrasts, precision)):
        return (
            f"their posterior is the prior's along that: pass more noise, such as noise_ratio="
            f"{MORE_NOISE * noise_ratio:g}, which tells them apart, or {prior}"
        )
    return (
        f"their posterior is the prior's along that, and more noise does not help: pass {prior}, "
        "leave some of them out of the model, or centre and rescale data far from zero"
    )


def _parts(
    problem: Problem, contrasts: Sequence[Contrast], precision: Precision
) -> list[tuple[str, FloatArray, Sequence[Contrast]]]:
    """Label, the prior's precision of theta, and contrasts: of all groups where they are coupled.

    Of coupled groups the precision is that of a theta which all of them share.
    """
    if precision.between is not None:
        between = np.sum(precision.between, axis=0)
        within = np.sum(precision.within, axis=0)
        both = within + 2 * (between if within.ndim == 1 else np.diag(between))
        return [(problem.labels[0], both, contrasts)]
    rows = zip(problem.labels, precision.within, contrasts, strict=True)
    return [(label, within, (each,)) for label, within, each in rows]


def _theta_precision(problem: Problem) -> Precision:
    """The prior's precision of theta, at a draw of its scales."""
    count = len(statistic_names(problem.model))
    prior: Any = problem.prior
    if isinstance(prior, Blocks):
        prior = Blocks(tuple(part for part in prior.parts if part.name != NORMALIZER))
    shape = len(problem.labels), count
    state = prior.draw(shape, np.random.default_rng(0))
    found: Precision = prior.gaussian(state, shape)[0]
    return found


def _diagonal(within: FloatArray) -> FloatArray:
    return within if within.ndim == 2 else np.einsum("gii->gi", within)


def _is_small(problem: Problem) -> bool:
    count = len(statistic_names(problem.model))
    rows = sum(map(len, problem.data)) + sum(problem.source.sizes)
    return count <= MOST_CHECKED and rows * count <= MOST_CHECKED_ENTRIES


def _holds(directions: FloatArray, precision: FloatArray) -> bool:
    """Whether a prior of this precision, a diagonal or a matrix, has a scale along all of them."""
    full = np.diag(precision) if precision.ndim == 1 else precision
    # In units in which each statistic alone has precision one, where it has any.
    roots = np.sqrt(np.maximum(np.diag(full), np.finfo(float).tiny))
    scaled = directions * np.where(np.diag(full) > 0, roots, roots.max())
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
    units = np.where(np.diag(full) > 0, 1 / roots, 0.0)
    values = np.linalg.eigvalsh(scaled @ (full * np.outer(units, units)) @ scaled.T)
    return bool(values[0] > FLAT)


def _unseen(contrasts: Sequence[Contrast], count: int, always: bool = False) -> Unseen | None:
    """What these points do not tell apart; None if nothing.

    With fewer points than statistics some combination always vanishes: that is the prior's job,
    and not looked at unless ``always``.
    """
    rows = sum(each.design.shape[0] for each in contrasts)
    too_many = count > MOST_CHECKED or rows * count > MOST_CHECKED_ENTRIES
    if too_many or rows == 0 or (rows <= count and not always):
        return None
    matrix = np.concatenate([each.design.dense()[:, :-1] for each in contrasts])
    largest = np.abs(matrix).max(axis=0)
    is_constant = np.ptp(matrix, axis=0) <= 1e-12 * largest
    constant, varying = np.flatnonzero(is_constant), np.flatnonzero(~is_constant)
    # By the largest first, so that squares of very small or large values stay in range.
    matrix = matrix[:, varying] / largest[varying]
    matrix -= matrix.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    matrix /= norms
    _, pivots, rank, _ = dpstrf(matrix.T @ matrix, tol=COLLINEAR, lower=1)
    kept, extra = pivots[:rank] - 1, pivots[rank:] - 1
    if not len(constant) and not len(extra):
        return None
    weights = np.linalg.lstsq(matrix[:, kept], matrix[:, extra], rcond=None)[0]
    order = np.argsort(-np.abs(weights).max(axis=1, initial=0.0))
    partners = kept[[k for k in order if np.abs(weights[k]).max(initial=0.0) > 1e-6]]
    directions = np.zeros((len(constant) + len(extra), count))
    directions[np.arange(len(constant)), constant] = 1.0
    scales = largest[varying] * norms
    for row, column in enumerate(range(len(extra)), len(constant)):
        directions[row, varying[kept]] = -weights[:, column] / scales[kept]
        directions[row, varying[extra[column]]] = 1 / scales[extra[column]]
    return Unseen(constant, varying[extra], varying[partners.astype(np.intp)], directions)


def _words(unseen: Unseen, names: Sequence[str], model: Any) -> str:
    """Which statistics, and what is the matter with them."""
    owner, parts = model_name(model), []
    if len(unseen.constant):
        few = len(unseen.constant) == 1
        parts.append(
            f"the statistic{'' if few else 's'} {_listed(unseen.constant, names)} of {owner} "
            f"{'is' if few else 'are'} constant over data and noise, so that the normalizing "
            "constant can't be told from it"
        )
    if len(unseen.extra):
        few = len(unseen.extra) == 1
        parts.append(
            f"the statistic{'' if few else 's'} {_listed(unseen.extra, names)} of {owner} "
            f"{'is a linear combination' if few else 'are linear combinations'} of "
            f"{_listed(unseen.partners, names)} (and a constant) over data and noise"
        )
    return "; ".join(parts)


def _listed(columns: NDArray[np.intp], names: Sequence[str]) -> str:
    more = len(columns) - MOST_LISTED
    listed = ", ".join(repr(names[k]) for k in columns[:MOST_LISTED])
    return f"{listed} and {more} others" if more > 0 else listed


def _in_groups(labels: Sequence[str]) -> str:
    listed = ", ".join(map(repr, labels[:MOST_LISTED]))
    more = f" and {len(labels) - MOST_LISTED} others" if len(labels) > MOST_LISTED else ""
    return f"in group {listed}{more}: "


def check_informative(model: Any, data: Mapping[str, FloatArray], coupled: bool) -> None:
    """Let the model refuse rows that can't inform its theta: those of a group, or all of them.

    Groups that a prior ties together inform each other.
    """
    check = getattr(model, "check_data", None)
    if check is None:
        return
    if coupled or len(data) == 1:
        check(np.concatenate(list(data.values())))
        return
    for label, points in data.items():
        if len(points):
            with in_group(label):
                try:
                    check(points)
                except InputError as error:
                    raise InputError(
                        f"{error}, or tie the groups together, as by "
                        "prior=ncbayes.priors.Hierarchical()"
                    ) from error

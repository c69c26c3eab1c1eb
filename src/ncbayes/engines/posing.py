"""A target's likelihood for compiled loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import FloatArray
from ncbayes.contrast import Contrast, Target
from ncbayes.linalg.designs import products

if TYPE_CHECKING:
    from ncbayes.linalg.likelihoods import Likelihood

# Designs of products with at least so many entries in their dense matrix are never made dense.
MOST_ENTRIES = 2**21


def compiled_likelihood(target: Target) -> Likelihood:
    """The likelihood as arrays: of labels, or, where losses are, of states or quadratic."""
    if target.losses and getattr(target.losses[0], "states", None) is not None:
        return _of_states(target.losses)
    if target.losses:
        grams = np.array([each.gram for each in target.losses])
        return _filled(kind=2, grams=grams, shifts=np.array([e.shift for e in target.losses]))
    contrasts = target.contrasts
    entries = sum(each.design.shape[0] * each.design.shape[1] for each in contrasts)
    found = [products(each.design) for each in contrasts] if entries >= MOST_ENTRIES else []
    if found and all(each is not None for each in found):
        return _of_products(contrasts, found)
    matrices = [each.design.dense() for each in contrasts]
    size = matrices[0].shape[1]
    rows = sum(map(len, matrices))
    squares = sum(np.einsum("ij,ij->j", each, each) for each in matrices)
    # In these units all columns are of the order of 1, which single precision holds best.
    deviations = np.sqrt(squares / max(rows, 1))
    units = np.where(deviations > 0, deviations, 1.0)
    flat = np.concatenate([np.ravel(each.T) for each in matrices])
    single = [np.ravel((each / units).T).astype(np.float32) for each in matrices]
    return _filled(
        kind=0,
        bounds=np.cumsum([0, *map(len, matrices)]),
        offset=np.concatenate([each.offset for each in contrasts]),
        label=np.concatenate([each.is_data for each in contrasts]).astype(float),
        columns=flat,
        single=np.concatenate([np.zeros(0, np.float32), *single]),
        units=units if size else np.ones(0),
    )


def _of_states(losses: tuple[Any, ...]) -> Likelihood:
    states = losses[0].states
    largest = np.abs(states.statistics).max(axis=0, initial=0.0)
    units = np.where(largest > 0, largest, 1.0)
    return _filled(
        kind=3,
        offset=states.log_weights,
        columns=np.ravel(states.statistics.T),
        single=np.ravel((states.statistics / units).T).astype(np.float32),
        units=units,
        shifts=np.array([each.total for each in losses]),
        counts=np.array([float(each.rows) for each in losses]),
    )


def _of_products(contrasts: tuple[Contrast, ...], found: list[Any]) -> Likelihood:
    from ncbayes.linalg.likelihoods import CHUNK

    chunks, offsets, labels, bounds = [], [], [], [0]
    for each, (waves, *_) in zip(contrasts, found, strict=True):
        points = len(each.offset)
        filled = -(-points // CHUNK) * CHUNK
        padded = np.pad(waves, ((0, 0), (0, filled - points)))
        chunks.append(padded.reshape(len(waves), -1, CHUNK).transpose(1, 0, 2))
        offsets.append(np.pad(each.offset, (0, filled - points), constant_values=-np.inf))
        labels.append(np.pad(each.is_data.astype(float), (0, filled - points)))
        bounds.append(bounds[-1] + filled)
    return _filled(
        kind=1,
        bounds=np.array(bounds),
        offset=np.concatenate(offsets),
        label=np.concatenate(labels),
        waves=np.concatenate(chunks),
        pairs=found[0][1],
        signs=found[0][2],
    )


def _filled(kind: int, **given: FloatArray) -> Likelihood:
    """The record, with empty arrays for what another kind has."""
    from ncbayes.linalg.likelihoods import Likelihood

    empty = {
        "bounds": np.zeros(1, np.int64), "offset": np.zeros(0), "label": np.zeros(0),
        "columns": np.zeros(0), "single": np.zeros(0, np.float32), "units": np.zeros(0),
        "waves": np.zeros((0, 0, 0)), "pairs": np.zeros((0, 2, 2), np.int64),
        "signs": np.zeros((0, 2)), "grams": np.zeros((0, 0, 0)), "shifts": np.zeros((0, 0)),
        "counts": np.zeros(0),
    }  # fmt: skip
    fields: dict[str, Any] = {**empty, **given}
    fields = {name: np.ascontiguousarray(values) for name, values in fields.items()}
    fields["bounds"] = fields["bounds"].astype(np.int64)
    return Likelihood(
        kind=kind,
        single_offset=fields["offset"].astype(np.float32),
        single_label=fields["label"].astype(np.float32),
        single_waves=fields["waves"].astype(np.float32),
        **fields,
    )

"""The look at predictions that a fit takes by itself, taken again."""

from __future__ import annotations

import dataclasses
from typing import Any

from ncbayes.base import InputError
from ncbayes.checks.records import verify_again
from ncbayes.contrast import model_name
from ncbayes.fields import stored_field
from ncbayes.inputs import Seed, checked_entropy
from ncbayes.posterior import Posterior
from ncbayes.predictive.checks import check_posterior, check_powers


def verify(posterior: Posterior, model: Any = None, seed: Seed = None) -> Posterior:
    """The posterior with its predictions looked at again, by this seed.

    ``fit`` does it by itself (``posterior.verdict()``). This is for another seed, for fits with
    ``verify=False``, and for posteriors from files, which hold no model. ``model`` is the one
    that was fitted; densities need none.
    """
    check_posterior("predictive.verify", posterior)
    field = None
    if "field" in posterior.data.children:
        field = stored_field(posterior.data, "predictive.verify")
    else:
        check_powers(posterior, model, ())
    entropy = checked_entropy(seed, None)
    try:
        again = verify_again(posterior.data, model, field, entropy)
    except InputError as impossible:
        if field is not None or any(hasattr(model, power) for power in ("sample", "sweep")):
            raise
        raise InputError(
            f"{model_name(model)} has neither sample nor sweep, so data can't be simulated; "
            "give it sample(theta, size, rng)"
        ) from impossible
    return dataclasses.replace(posterior, data=again)

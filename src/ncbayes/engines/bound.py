"""Engines that prepare a kernel for a target, for callers that go sweep by sweep."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ncbayes.base import Draw
from ncbayes.contrast import Kernel, Target

# The last kernel of each target in use, and whose it is.
_KERNELS: WeakKeyDictionary[Target, tuple[object, Kernel]] = WeakKeyDictionary()


class Bound:
    """``start`` and ``step`` of an engine that has ``kernel(target)``."""

    def kernel(self, target: Target) -> Kernel:
        raise NotImplementedError

    def start(self, target: Target, rng: np.random.Generator) -> Draw:
        """Where a chain begins."""
        return self._bound(target).start(rng)

    def step(self, target: Target, draw: Draw, rng: np.random.Generator) -> Draw:
        """One sweep."""
        return self._bound(target).sweeps(draw, rng, 1).last

    def _bound(self, target: Target) -> Kernel:
        if target not in _KERNELS or _KERNELS[target][0] != self:
            _KERNELS[target] = self, self.kernel(target)
        return _KERNELS[target][1]

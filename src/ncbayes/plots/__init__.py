"""Pictures of posteriors; matplotlib is imported only here."""

from ncbayes.plots.chains import trace
from ncbayes.plots.densities import density
from ncbayes.plots.noises import noise

__all__ = ["density", "noise", "trace"]

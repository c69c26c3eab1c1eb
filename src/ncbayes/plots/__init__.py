"""Pictures of posteriors; matplotlib is imported only here."""

from ncbayes.plots.angles import pairs, predictive
from ncbayes.plots.chains import trace
from ncbayes.plots.couplings import coefficients, shrinkage
from ncbayes.plots.densities import density
from ncbayes.plots.networks import adjacency, network
from ncbayes.plots.noises import noise

__all__ = [
    "adjacency",
    "coefficients",
    "density",
    "network",
    "noise",
    "pairs",
    "predictive",
    "shrinkage",
    "trace",
]

"""Pictures of posteriors; matplotlib is imported only here."""

from ncbayes.plots.angles import pairs, predictive
from ncbayes.plots.chains import trace
from ncbayes.plots.comparisons import comparison
from ncbayes.plots.couplings import coefficients, shrinkage
from ncbayes.plots.densities import density
from ncbayes.plots.maps import (
    animation,
    change_map,
    density_bands,
    density_maps,
    uncertainty_maps,
)
from ncbayes.plots.networks import adjacency, network
from ncbayes.plots.noises import noise
from ncbayes.plots.predictions import predictions

__all__ = [
    "adjacency",
    "animation",
    "change_map",
    "coefficients",
    "comparison",
    "density",
    "density_bands",
    "density_maps",
    "network",
    "noise",
    "pairs",
    "predictions",
    "predictive",
    "shrinkage",
    "trace",
    "uncertainty_maps",
]

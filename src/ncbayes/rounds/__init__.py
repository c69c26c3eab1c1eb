"""Self-consistent noise: a mixture led by the fitted model itself, made and checked in rounds."""

from ncbayes.rounds.loop import BATCHES, POINTS_A_PARAMETER, Made, self_consistent

__all__ = ["BATCHES", "POINTS_A_PARAMETER", "Made", "self_consistent"]

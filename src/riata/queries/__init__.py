"""Unevaluated functions of the rows, each with a proven sensitivity."""

from riata.queries.base import Query
from riata.queries.gradient import ClippedGradient, Gradient, GradientEntries, MeanSlope
from riata.queries.minimum import FineGradient, Minimum
from riata.queries.moments import SquaredMoments
from riata.queries.utilities import GradientStep, OfGradient, VertexUtilities

__all__ = [
    "ClippedGradient",
    "FineGradient",
    "Gradient",
    "GradientEntries",
    "GradientStep",
    "MeanSlope",
    "Minimum",
    "OfGradient",
    "Query",
    "SquaredMoments",
    "VertexUtilities",
]

"""Unevaluated functions of the rows, each with a proven sensitivity."""

from riata.queries.base import OfProblem, ProblemQuery, Query
from riata.queries.block import Block, Reads
from riata.queries.class_sums import ScoreCounts, SumsByClass
from riata.queries.classes import ClassCounts, MarginCounts, MarginSlopes
from riata.queries.columns import CentredGradient, ColumnSquares, ColumnSums, Scaling
from riata.queries.correlations import Coordinate, Correlations
from riata.queries.flags import FlagCounts
from riata.queries.frank_wolfe_path import FrankWolfePath
from riata.queries.gradient import ClippedGradient, Gradient, GradientEntries, MeanSlope
from riata.queries.improvement import Improvement
from riata.queries.mean_vector import MeanEntries, MeanVector
from riata.queries.minimum import FineGradient, Minimum
from riata.queries.moments import SquaredMoments
from riata.queries.nuisance import NuisanceSums
from riata.queries.prediction import AbsoluteError, PredictionError, SquaredError, WrongLabels
from riata.queries.public_rows import DesignCurve, DesignRows, LabelSums, RowQuery
from riata.queries.row_digest import RowDigest
from riata.queries.row_gradient import (
    RowGradient,
    RowUtilities,
    risk_gradient,
    vertex_utilities,
)
from riata.queries.short_rows import OfShortRows
from riata.queries.sizes import EntrySizes, LengthSizes, RowLengths, Sizes, SlopeSizes
from riata.queries.softmax import Influence, MarginLengths, SoftmaxGradient, SoftmaxLine
from riata.queries.support import (
    LimitedSlope,
    MeanCurvature,
    Support,
    SupportCurvature,
    SupportGradient,
)
from riata.queries.utilities import GradientStep, OfGradient, VertexUtilities
from riata.queries.whitening import (
    GradientMoments,
    JointMoments,
    PreconditionedGradient,
    Whitening,
)

__all__ = [
    "AbsoluteError",
    "Block",
    "CentredGradient",
    "ClassCounts",
    "ClippedGradient",
    "ColumnSquares",
    "ColumnSums",
    "Coordinate",
    "Correlations",
    "DesignCurve",
    "DesignRows",
    "EntrySizes",
    "FineGradient",
    "FlagCounts",
    "FrankWolfePath",
    "Gradient",
    "GradientEntries",
    "GradientMoments",
    "GradientStep",
    "Improvement",
    "Influence",
    "JointMoments",
    "LabelSums",
    "LengthSizes",
    "LimitedSlope",
    "MarginCounts",
    "MarginLengths",
    "MarginSlopes",
    "MeanCurvature",
    "MeanEntries",
    "MeanSlope",
    "MeanVector",
    "Minimum",
    "NuisanceSums",
    "OfGradient",
    "OfProblem",
    "OfShortRows",
    "PreconditionedGradient",
    "PredictionError",
    "ProblemQuery",
    "Query",
    "Reads",
    "RowDigest",
    "RowGradient",
    "RowLengths",
    "RowQuery",
    "RowUtilities",
    "Scaling",
    "ScoreCounts",
    "Sizes",
    "SlopeSizes",
    "SoftmaxGradient",
    "SoftmaxLine",
    "SquaredError",
    "SquaredMoments",
    "SumsByClass",
    "Support",
    "SupportCurvature",
    "SupportGradient",
    "VertexUtilities",
    "Whitening",
    "WrongLabels",
    "risk_gradient",
    "vertex_utilities",
]

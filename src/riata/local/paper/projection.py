"""What Algorithms 2 and 3 do to a row before it is sent: project, and clip after that."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.local.arguments import check_positive, check_whole
from riata.projections import GaussianProjection, GivenProjection, Projection

#: The part of the rows that may be shortened after projecting, by the choice of the reach.
_SHORTENED = 1e-3

_UNIT_BALL = Bounds(1.0, norm="l2")


def public_projection(dimension: int, n_features: int, seed: int) -> Projection:
    """The matrix that everybody shares: the identity if it would not make rows shorter."""
    seed = check_whole("projection_seed", seed, "it names the public projection", 0)
    return _made(min(dimension, n_features), n_features, seed)


@lru_cache(maxsize=2)
def _made(dimension: int, n_features: int, seed: int) -> Projection:
    if dimension == n_features:
        return GivenProjection(np.eye(n_features))
    return GaussianProjection(dimension, n_features, seed)


def describe_projection(projection: Projection, seed: int) -> str:
    """The projection, for a Statement."""
    return f"seed {seed}" if projection.dimension < projection.n_features else "none"


def check_dimension(dimension: Any, automatic: float | None, n_features: int) -> int:
    """The number of coordinates that are sent: at most as many as there are."""
    if isinstance(dimension, str) and dimension == "auto":
        if automatic is None:
            raise InvalidArgument(
                'dimension="auto" follows from the public number of people, which a single device '
                "does not know. Pass n_users, or a whole number as dimension."
            )
        return max(1, min(n_features, math.ceil(automatic)))
    why = "it is the number of coordinates that a device sends"
    return min(n_features, check_whole("dimension", dimension, why))


def check_reach(reach: Any, dimension: int, n_features: int) -> float:
    """The radius to which projected rows are clipped.

    "auto" is 1 without a projection. With one, a fixed row of length 1 is longer than
    1 + sqrt(2 log(1000) / dimension) for at most one public matrix in a thousand.
    """
    if isinstance(reach, str) and reach == "auto":
        if dimension >= n_features:
            return 1.0
        return 1 + math.sqrt(2 * math.log(1 / _SHORTENED) / dimension)
    return check_positive("reach", reach, "projected rows are clipped to this length")


def project_rows(x: Any, projection: Projection) -> np.ndarray:
    """Rows of the unit ball, projected. Longer ones are shortened first."""
    rows: Any = _UNIT_BALL.clip_x(x)
    if projection.dimension < projection.n_features:
        return projection.rows(rows)
    return rows.toarray() if sparse.issparse(rows) else rows

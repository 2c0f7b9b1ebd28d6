"""What a run returns, and what it tells of its steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riata.losses import Loss
from riata.vectors import Vector


@dataclass(frozen=True)
class Step:
    """What a progress callback is told. Public for a private solver."""

    number: int
    total: int
    gap: float | None = None


Callback = Callable[[Step], None]


@dataclass(frozen=True)
class Fit:
    """A private estimate of how well a model fits the rows that it was fitted to.

    Attributes
    ----------
    gain : float
        How much lower its mean loss is than that of the best constant: 1 for a perfect fit, as R2.
    error : float
        The standard error of `gain` that the noise makes.
    loss : float
        The mean loss of the model, at least its noise. Large losses are clipped.
    """

    gain: float
    error: float
    loss: float = math.nan


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    theta : Vector
    steps : int
    gap : float, optional
        A certificate, of solvers without privacy.
    errors : ndarray, optional
        The standard errors of the values of theta, in the order of its support.
    offset_error : float, optional
    covariance : ndarray of shape (2, k + 1, k + 1), optional
        Of the k values of theta, in the order of its support, and of the offset. The second matrix
        is the part of the first that is no more than a guess: of directions in which rows hardly
        vary.
    fit : Fit, optional
    line : tuple of (float, float)
        The slope and the intercept that make calibrated log-odds of the model's margins.
    weights : tuple of float, optional
        How much each class counted, if they did not count alike.
    selected : tuple of int
        The columns that were selected one by one, in order, each where it came first. Empty for
        solvers that do not select columns one by one.
    """

    theta: Vector
    steps: int
    gap: float | None = None
    errors: np.ndarray | None = None
    offset_error: float | None = None
    covariance: np.ndarray | None = None
    fit: Fit | None = None
    line: tuple[float, float] = (1.0, 0.0)
    weights: tuple[float, ...] | None = None
    selected: tuple[int, ...] = ()
    loss: Loss | None = None

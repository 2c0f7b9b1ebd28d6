"""What the exponential of a coefficient is: a ratio of odds, rates or hazards, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.estimators.description import ModelDescription
from riata.losses import Cox, Logistic, OrderedLogistic


def ratio_kind(model: Any, about: ModelDescription) -> str:
    """ "odds", "rate", "hazard", or "" for a model whose coefficients are no logarithms of ratios.

    Of classes that were fitted together only differences of functions are log-odds.
    """
    if not about.linear or about.multinomial:
        return ""
    if about.task is not None:
        return {"logistic": "odds", "poisson": "rate"}.get(about.task.spec.family, "")
    loss = getattr(model, "loss", None)
    if about.output == "label":
        odds = Logistic | OrderedLogistic
        plain = about.probabilities and (loss is None or isinstance(loss, odds))
        return "odds" if plain else ""
    if isinstance(loss, Cox):
        return "hazard"
    return "rate" if getattr(loss, "link", "") == "log" else ""


def calibration_lines(model: Any, functions: int) -> np.ndarray:
    """A slope and an intercept for each function, which make log-odds of margins."""
    return np.atleast_2d(getattr(model, "calibration_", np.tile([1.0, 0.0], (functions, 1))))

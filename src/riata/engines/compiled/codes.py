"""The losses that the kernels know, by numbers. Imports no compiler."""

from __future__ import annotations

from riata.losses import Huber, Logistic, Loss, OneAgainstRest, SmoothedHinge, Squared

SQUARED, HUBER, LOGISTIC, HINGE = range(4)


def known_loss(loss: Loss) -> tuple[int, float] | None:
    """The number of a loss that the kernels know, and its parameter."""
    if isinstance(loss, OneAgainstRest):
        return known_loss(loss.loss)
    numbers = {
        Squared: (SQUARED, 0.0),
        Logistic: (LOGISTIC, 0.0),
        Huber: (HUBER, getattr(loss, "threshold", 0.0)),
        SmoothedHinge: (HINGE, getattr(loss, "smoothing", 0.0)),
    }
    return numbers.get(type(loss))

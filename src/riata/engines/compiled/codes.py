"""The losses that the kernels know, by numbers. Imports no compiler."""

from __future__ import annotations

from riata.losses import Huber, Logistic, Loss, OneAgainstRest, SmoothedHinge, Squared

SQUARED, HUBER, LOGISTIC, HINGE = range(4)


def known_loss(loss: Loss) -> tuple[int, float] | None:
    """The number of a loss that the kernels know, and its parameter."""
    if isinstance(loss, OneAgainstRest):
        return known_loss(loss.loss)
    if type(loss) is Huber:
        return HUBER, loss.threshold
    if type(loss) is SmoothedHinge:
        return HINGE, loss.smoothing
    number = {Squared: SQUARED, Logistic: LOGISTIC}.get(type(loss))
    return None if number is None else (number, 0.0)

"""Which losses are proven to be as they declare, and what stands in for the others."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import cached_property

from riata.losses.base import Loss
from riata.losses.tabulated import Tabulated, tabulated
from riata.losses.weighted_rows import WeightedRows
from riata.losses.wrapped import WrappedLoss


def proven(loss: Loss) -> bool:
    """Whether the bounds of a loss have a proof: it is riata's own, and so is what it is made of.

    A subclass of one of riata's losses is not, nor is an object with attributes that its class
    does not declare: they may say anything. A table has the bounds that it shows.
    """
    from riata.losses import REGISTRY

    kind = type(loss)
    if kind is Tabulated:
        return True
    if kind not in REGISTRY.values() or not _declared(kind) >= vars(loss).keys():
        return False
    parts = [part for name, part in vars(loss).items() if name == "loss" or isinstance(part, Loss)]
    return all(proven(part) for part in parts)


def _declared(kind: type) -> set[str]:
    """The attributes that objects of a class may have: its fields, and what it computes once."""
    names = {each.name for each in fields(kind)} if is_dataclass(kind) else set()
    once = (vars(base).items() for base in kind.__mro__)
    return names | {n for some in once for n, value in some if isinstance(value, cached_property)}


def enforced(loss: Loss, margin: float, y: float) -> Loss:
    """The loss, if its bounds are proven, else one that keeps to them for margins up to `margin`.

    Around a loss of somebody else riata's own wrappers stay as they are.
    """
    from riata.losses import REGISTRY

    if proven(loss):
        return loss
    if type(loss) in REGISTRY.values():
        if isinstance(loss, WrappedLoss):
            return replace(loss, loss=enforced(loss.loss, margin, loss.inner_bound(y)))  # type: ignore[type-var]
        if isinstance(loss, WeightedRows):
            return replace(loss, loss=enforced(loss.loss, margin + loss.farthest, loss.y))
    return tabulated(loss, margin, y)

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.exponential import exponential, logarithm
from riata.losses.log_link import SMALLEST_LOG_PART
from riata.losses.nuisance import NuisanceLoss
from riata.losses.poisson import Poisson

#: From this cumulative hazard of a row on the loss is straight. Such a row survives with a
#: probability of e^-16, so that no model of real durations is affected.
LARGEST_HAZARD = 16.0

#: A cumulative hazard counts as at least this where its logarithm is taken.
_SMALLEST_HAZARD = 1e-15

#: A hazard stays within this factor of one event in the whole time.
_RANGE = 1e6


@dataclass(frozen=True)
class Cox(NuisanceLoss):
    """The proportional hazards model with a constant baseline hazard in each band of time.

    A row that is observed from 0 to t has the cumulative hazard ``e^margin * baseline(t)``, and
    the loss is that of a Poisson count with this mean: 1 for an event at t, 0 for none. A target is
    t for an event at t, and -t for a row that is censored at t (`signed_durations`). Missing ones
    count as censored at 0.

    Parameters
    ----------
    edges : tuple of float
        The upper ends of the bands: positive, increasing. Public.
    rates : tuple of float, optional
        The baseline hazard of each band, for a unit of time. One event in the whole time if left
        out.

    References
    ----------
    Holford (1980). The analysis of rates and of survivorship using log-linear models.
    """

    edges: tuple[float, ...]
    rates: tuple[float, ...] | None = None

    name = "Cox"
    link = "log"
    n_parts = 3
    longest_parts = math.sqrt(3.0)

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        sound = edges.ndim == 1 and len(edges) > 0 and bool(np.isfinite(edges).all())
        if not sound or bool((np.diff(edges, prepend=0.0) <= 0).any()):
            raise InvalidArgument(
                f"edges={self.edges!r} must be positive and increasing: the upper ends of bands of "
                "time."
            )
        if self.rates is None:
            object.__setattr__(self, "rates", (1 / float(edges[-1]),) * len(edges))
        rates = np.asarray(self.rates, dtype=np.float64)
        if rates.shape != edges.shape or not bool((np.isfinite(rates) & (rates > 0)).all()):
            raise InvalidArgument(
                f"rates={self.rates!r} must be {len(edges)} positive numbers, one for each band."
            )

    @property
    def twice_differentiable(self) -> bool:
        return False

    @cached_property
    def _inner(self) -> Poisson:
        return Poisson(LARGEST_HAZARD)

    @cached_property
    def _bands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The lower ends, the widths, and the cumulative hazards at the lower ends."""
        lower = np.concatenate([[0.0], self.edges[:-1]])
        widths = np.asarray(self.edges) - lower
        steps = np.asarray(self.rates) * widths
        return lower, widths, np.concatenate([[0.0], np.cumsum(steps)[:-1]])

    def baseline(self, t: np.ndarray) -> np.ndarray:
        """The cumulative baseline hazard, constant from the last edge on."""
        t = np.clip(t, 0.0, self.edges[-1])
        band = np.minimum(np.searchsorted(self.edges, t), len(self.edges) - 1)
        lower, _, before = self._bands
        found: np.ndarray = before[band] + np.asarray(self.rates)[band] * (t - lower[band])
        return found

    @cached_property
    def _largest_offset(self) -> float:
        largest = self.baseline(np.array(self.edges))[-1:]
        return float(logarithm(np.maximum(largest, _SMALLEST_HAZARD))[0])

    def _read(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of the baseline of each row, and 1 for an event."""
        offset = logarithm(np.maximum(self.baseline(_durations(y)), _SMALLEST_HAZARD))
        return offset, (y > 0).astype(np.float64)

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        offset, event = self._read(y)
        return self._inner.value(margin + offset, event)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        offset, event = self._read(y)
        return self._inner.slope(margin + offset, event)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        offset, event = self._read(y)
        return self._inner.curvature(margin + offset, event)

    def slope_bound(self, margin: float, y: float) -> float:
        _, highest = self.slope_range(np.array([margin]), y)
        return float(max(1.0, highest[0]))

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        _, highest = self._inner.slope_range(margin + self._largest_offset, 1.0)
        return np.full(np.shape(margin), -1.0), highest

    def curvature_bound(self, y: float) -> float:
        return self._inner.curvature_bound(1.0)

    def offset_bound(self, y: float) -> float:
        return SMALLEST_LOG_PART

    # The baseline hazard.

    @property
    def n_cells(self) -> int:
        return len(self.edges)

    def cells(self, y: np.ndarray) -> np.ndarray:
        """The band in which a row is last observed."""
        found = np.searchsorted(self.edges, _durations(y))
        return np.minimum(found, len(self.edges) - 1).astype(np.float64)

    def parts(self, margin: np.ndarray, y: np.ndarray, reach: float) -> np.ndarray:
        """1 for an event; e^margin over its largest; that times the part of the band observed."""
        band = self.cells(y).astype(np.intp)
        lower, widths, _ = self._bands
        part = (_durations(y) - lower[band]) / widths[band]
        size = exponential(np.minimum(margin, reach) - reach)
        return np.column_stack([y > 0, size, size * np.clip(part, 0.0, 1.0)])

    def refitted(self, means: np.ndarray, noise: float, reach: float, *, constant: bool) -> Self:
        """Events over the time at risk times e^margin: Breslow's estimate, smoothed by noise."""
        largest, least = float(exponential(np.array(reach))), max(noise, 1e-9)
        events, whole, last = np.maximum(means[:, 0], 0.0), *(largest * means[:, 1:].T)
        later = np.cumsum(whole[::-1])[::-1] - whole
        at_risk = np.maximum(last + later, largest * least)
        usual = max(float(events.sum() / at_risk.sum()), least)
        _, widths, _ = self._bands
        with np.errstate(over="ignore"):  # in a band that has hardly any width
            rates = (events + least) / (at_risk + least / usual) / widths
        once = 1 / self.edges[-1]
        rates = np.clip(rates, once / _RANGE, once * _RANGE)
        return replace(self, rates=tuple(rates.tolist()))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls((1.0,)), cls((0.5, 1.0), (0.2, 1.5))


def signed_durations(duration: np.ndarray, event: np.ndarray, horizon: float) -> np.ndarray:
    """The target of each row: t for an event at t, -t for none. Never an error.

    Durations beyond the horizon are censored there; missing ones and those that are not positive
    count as censored at 0, and a missing event as none.
    """
    with np.errstate(all="ignore"):
        happened = (event > 0) & (duration <= horizon)
        t = np.fmin(np.fmax(duration, 0.0), horizon)  # NaN becomes 0
    return np.where(happened, t, -t) + 0.0


def _durations(y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(y), 0.0, np.abs(y))

"""Regressions whose rows may have weights and exposures, within public bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from riata.data.arrays import row_numbers
from riata.data.source import Source
from riata.errors import InvalidArgument
from riata.estimators.base import BoundedModel, Checkpointed
from riata.estimators.regressor import PrivateRegressor
from riata.fitting import Request
from riata.fitting.dask_rows import Convert, is_collection
from riata.fitting.rows import Table
from riata.losses import WeightedRows
from riata.losses.weighted_rows import CODES
from riata.privacy.budget import check_scale

_WEIGHTS_NOTE = "Weights and exposures of rows are clipped into their bounds, and protected."


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedRegressor(PrivateRegressor, BoundedModel):
    """A regression with `sample_weight`, and with `exposure` if its link is the logarithm."""

    max_weight: float | None = None

    @property
    def _max_exposure(self) -> float | None:
        return getattr(self, "max_exposure", None)

    def check_parameters(self) -> None:
        super().check_parameters()
        for name in ("max_weight", "max_exposure"):
            if (value := getattr(self, name, None)) is not None:
                check_scale(name, value, "noise is scaled to it.")

    def request_for_shape(self, n_rows: int, n_features: int, **more: Any) -> Request:
        """What a fit on rows of this shape asks for. Reads nothing."""
        request = super().request_for_shape(n_rows, n_features, **more)
        if self.max_weight is None and self._max_exposure is None:
            return request
        (loss,), y = request.losses, request.bounds.y
        assert y is not None
        weight = 1.0 if self.max_weight is None else float(self.max_weight)
        rows = WeightedRows(loss, y, weight, self._max_exposure)
        notes = (*request.notes, _WEIGHTS_NOTE)
        return replace(request, losses=(rows,), bounds=request.bounds.with_y(CODES), notes=notes)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        checkpoint: Checkpointed = None,
    ) -> Self:
        """Fit the model and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features), or Source
        y : array-like of shape (n_rows,)
            Left out for a source, which has its own.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts: protected, and at most `max_weight`.
        exposure : array-like of shape (n_rows,), optional
            What each row's mean is multiplied by, such as the time at risk: protected, and at most
            `max_exposure`. An offset is the logarithm of an exposure.
        checkpoint : path, optional
            As for `PrivateLasso`.
        """
        of_rows = {"sample_weight": sample_weight, "exposure": exposure}
        for name, limit in (("sample_weight", "max_weight"), ("exposure", "max_exposure")):
            if of_rows[name] is None:
                continue
            if getattr(self, limit, None) is None:
                raise InvalidArgument(
                    f"{name} needs a public bound: taking the largest from the data would reveal "
                    f"it. Pass {limit}=... to {type(self).__name__}."
                    if hasattr(self, limit)
                    else f"{type(self).__name__} has no {name}: its mean is the margin itself."
                )
            if isinstance(X, Source) or is_collection(X):
                raise InvalidArgument(
                    f"{name} is for rows in arrays, and these are in a source or a collection. "
                    "Pass an array: fit(*source.load(), ...)."
                )
        return self._fit(*self.request(X, y, **of_rows), checkpoint)

    def _coded(
        self, convert: Convert | None, request: Request, table: Table, of_rows: Mapping[str, Any]
    ) -> Convert | None:
        rows = request.losses[0]
        if not isinstance(rows, WeightedRows):
            return convert
        given = (of_rows.get("sample_weight"), of_rows.get("exposure"))
        weight, exposure = (
            None if each is None else row_numbers(each, table.shape[0], name)
            for each, name in zip(given, ("sample_weight", "exposure"), strict=True)
        )
        return partial(_encoded, rows, convert, weight, exposure)


def _encoded(
    rows: WeightedRows,
    convert: Convert | None,
    weight: np.ndarray | None,
    exposure: np.ndarray | None,
    y: np.ndarray,
) -> np.ndarray:
    return rows.encode(y if convert is None else convert(y), weight, exposure)

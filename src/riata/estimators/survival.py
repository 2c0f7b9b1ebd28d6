"""Private survival regression: proportional hazards over public bands of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from riata.arguments import is_whole
from riata.data.arrays import row_numbers
from riata.data.source import Source
from riata.errors import InvalidArgument
from riata.estimators.base import Checkpointed
from riata.estimators.nuisance import NuisanceModel
from riata.estimators.parameters import documented
from riata.fitting import Request
from riata.fitting.dask_rows import is_collection
from riata.fitting.prediction_rows import targets_of
from riata.fitting.rows import Table
from riata.losses import Cox, Loss, NuisanceLoss
from riata.losses.cox import signed_durations
from riata.losses.exponential import exponential
from riata.numeric import row_slices

#: So many bands of equal length if nobody says otherwise: noise on their hazards grows with it.
BANDS = 8

#: Pairs of rows that are compared at a time.
_PAIRS_AT_ONCE = 2**22


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCoxRegression(NuisanceModel):
    """Cox's proportional hazards regression of durations, with differential privacy.

    The hazard of a row at time t is baseline(t) * exp(x . theta), with a baseline that is constant
    in each of some public bands of time. Baseline and coefficients maximise the likelihood over
    ||theta||_1 <= radius together.

    Parameters
    ----------
    $epsilon
    bounds : Bounds
        How far a row may reach: public, and required. The bound on y is the horizon: rows are
        censored there.
    bands : int or sequence of float, default=8
        How many bands of equal length the time up to the horizon has, or their upper ends,
        increasing, the last of which is then the horizon. Public.
    $open_radius
    $solver
    $options

    Attributes
    ----------
    $coefficients
        Always 0: the baseline takes its place.
    hazard_ratios_ : ndarray of shape (n_features,)
        exp(coef_).
    band_ends_ : ndarray of shape (n_bands,)
    baseline_hazard_ : ndarray of shape (n_bands,)
        The hazard of a row of zeros in each band, for a unit of time.
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. A row is protected with its duration and its event, in all
    bands of time together. The solver is "profile-gradient", with a positive delta and at most
    1,024 columns.

    *Differences from lifelines.* Columns are not centred, so the baseline is that of a row of
    zeros. With durations that are rounded up to the ends of the bands the model is Cox's with
    Breslow's handling of ties; within wider bands the hazard is constant.

    References
    ----------
    Cox (1972). Regression models and life-tables.
    Holford (1980). The analysis of rates and of survivorship using log-linear models.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateCoxRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 5))
    >>> months = rng.exponential(20 * np.exp(-X[:, 1]))
    >>> died = months < rng.uniform(6, 36, 20_000)
    >>> model = PrivateCoxRegression(1.0, 1e-6, bounds=Bounds(x=1.0, y=24.0))
    >>> model = model.fit(X, months, died)
    >>> int(np.argmax(model.hazard_ratios_))
    1
    """

    bands: int | Sequence[float] = BANDS

    instead_of_intercept: ClassVar[str] = "the baseline hazards"

    reads_events: ClassVar[bool] = True

    @property
    def loss(self) -> Cox:
        """With a baseline that nothing is known about."""
        y = self.row_bounds().y
        if y is None:
            raise InvalidArgument(
                "PrivateCoxRegression needs a bound on y, the horizon of the study: the longest "
                "duration would reveal a person. Pass Bounds(x=..., y=...)."
            )
        return Cox(self._ends(float(y)))

    def _ends(self, horizon: float) -> tuple[float, ...]:
        """The upper ends of the bands."""
        given = self.bands
        if is_whole(given):
            if given < 1:
                raise InvalidArgument(f"bands={given!r} must be at least 1.")
            return tuple((horizon * np.arange(1, given + 1) / given).tolist())
        try:
            ends = tuple(float(end) for end in given)  # type: ignore[union-attr]
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"bands={given!r} must be a number of bands, or their upper ends."
            ) from None
        if not ends or ends[-1] != horizon:
            raise InvalidArgument(
                f"bands={given!r} end at another time than the bound on y, {horizon:g}. Both are "
                "the horizon, after which nothing is observed."
            )
        return ends

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.bounds is not None and not isinstance(self.bands, str):
            _ = self.loss

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        return (self.loss,)

    def fit(
        self, X: Any, y: Any = None, event: Any = None, *, checkpoint: Checkpointed = None
    ) -> Self:
        """Fit the model and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features), or Source
        y : array-like of shape (n_rows,)
            Durations. Left out for a source, whose schema names the columns of both.
        event : array-like of shape (n_rows,), optional
            Whether the event was observed at the end of the duration, and not censored; all of
            them if left out. What is missing is none.
        checkpoint : path, optional
            As for `PrivateLasso`.
        """
        if event is not None and (isinstance(X, Source) or is_collection(X)):
            raise InvalidArgument(
                "event is for rows in arrays. The schema of a source names its column: event = "
                '"..." under [target]. Of a collection pass arrays.'
            )
        return self._fit(*self.request(X, y, event=event), checkpoint)

    def _coded(self, convert: Any, request: Request, table: Table, of_rows: Any) -> Any:
        if self._schema is not None:
            return None  # the schema has made durations and events one number
        given, horizon = of_rows.get("event"), request.bounds.y
        assert horizon is not None
        event = None if given is None else row_numbers(given, table.shape[0], "event")
        return partial(_signed, horizon, event)

    def _set_nuisance(self, loss: NuisanceLoss, offset: float) -> None:
        assert isinstance(loss, Cox)
        self.band_ends_ = np.array(loss.edges)
        self.baseline_hazard_ = np.array(loss.rates) * float(exponential(np.array(offset)))

    def summary_facts(self) -> tuple[tuple[str, str], ...]:
        each = zip(self.baseline_hazard_, self.band_ends_, strict=True)
        return (("baseline hazard", ", ".join(f"{h:.4g} up to {end:g}" for h, end in each)),)

    # What it predicts, with the names of lifelines.

    @property
    def hazard_ratios_(self) -> np.ndarray:
        return np.exp(self.coef_)

    def predict_log_partial_hazard(self, X: Any) -> np.ndarray:
        """x . theta for each row."""
        return self._margins(X)

    def predict_partial_hazard(self, X: Any) -> np.ndarray:
        """How many times higher the hazard of each row is than that of a row of zeros."""
        return exponential(self._margins(X))

    def predict(self, X: Any) -> np.ndarray:
        """The same as `predict_partial_hazard`: the larger, the sooner events are expected."""
        return self.predict_partial_hazard(X)

    def predict_cumulative_hazard(self, X: Any, times: Any = None) -> np.ndarray:
        """The cumulative hazard of each row, a line, at each time, a column.

        Parameters
        ----------
        X : rows, as in `fit`
        times : array-like, optional
            The ends of the bands if left out; later times count as the horizon.
        """
        hazard = self.predict_partial_hazard(X)
        at = self.band_ends_ if times is None else np.atleast_1d(np.asarray(times, float))
        baseline = Cox(tuple(self.band_ends_), tuple(self.baseline_hazard_)).baseline(at)
        return np.asarray(hazard[:, None] * baseline)

    def predict_survival_function(self, X: Any, times: Any = None) -> np.ndarray:
        """The probability of no event until each time: lines and columns as above."""
        return np.asarray(np.exp(-self.predict_cumulative_hazard(X, times)))

    def score(self, X: Any, y: Any = None, event: Any = None) -> float:
        """The concordance index: how many pairs have the higher hazard at the earlier event.

        A half for hazards that say nothing, 1 for the right order of all pairs.
        """
        hazard = self.predict_partial_hazard(X)
        horizon = float(self.band_ends_[-1])
        if y is None:
            y = targets_of(self, X)
        else:
            event = None if event is None else row_numbers(event, len(hazard), "event")
            y = _signed(horizon, event, row_numbers(y, len(hazard), "y"))
        return _concordance(np.abs(y), y > 0, hazard)


def _signed(horizon: float, event: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    return signed_durations(y, np.ones(len(y)) if event is None else event, horizon)


def _concordance(t: np.ndarray, event: np.ndarray, hazard: np.ndarray) -> float:
    """Harrell's index; pairs of the same hazard count a half."""
    right = pairs = 0.0
    events = np.flatnonzero(event)
    for some in row_slices(len(events), len(t), _PAIRS_AT_ONCE):
        few = events[some, None]
        later = (t > t[few]) | ((t == t[few]) & ~event)
        higher = (hazard[few] > hazard) + 0.5 * (hazard[few] == hazard)
        right, pairs = right + float((higher * later).sum()), pairs + float(later.sum())
    return right / pairs if pairs else float("nan")

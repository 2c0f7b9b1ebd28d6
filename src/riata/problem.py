"""What is to be minimised, as public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import MOST_ROWS
from riata.losses import Loss
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, REPLACE_ONE, check_adjacency
from riata.queries import (
    CentredGradient,
    ClassCounts,
    ClippedGradient,
    ColumnSquares,
    ColumnSums,
    Coordinate,
    Correlations,
    EntrySizes,
    FrankWolfePath,
    Gradient,
    GradientStep,
    Improvement,
    LengthSizes,
    LimitedSlope,
    MarginCounts,
    MarginSlopes,
    MeanSlope,
    Minimum,
    Scaling,
    ScoreCounts,
    SlopeSizes,
    SumsByClass,
    Support,
    SupportCurvature,
    SupportGradient,
)
from riata.queries.sizes import PARTS
from riata.sets import ConstraintSet
from riata.sets.coordinate import CoordinatePolytope
from riata.vectors import Vector


@dataclass(frozen=True)
class Problem:
    """Minimise the mean loss over a set, for rows inside bounds.

    A problem knows no rows. It can write down queries, never evaluate one.

    Parameters
    ----------
    loss : Loss
    set : ConstraintSet
        Takes its dimension from `n_features`.
    bounds : Bounds
        With a bound on y.
    n_rows, n_features : int
    adjacency : {"replace-one", "add-remove"}
    fit_intercept : bool
        Whether an unconstrained offset is fitted beside theta.
    """

    loss: Loss
    set: ConstraintSet
    bounds: Bounds
    n_rows: int
    n_features: int
    adjacency: str = REPLACE_ONE
    fit_intercept: bool = False

    def __post_init__(self) -> None:
        for name in ("n_rows", "n_features"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name}={getattr(self, name)} must be at least 1.")
        if self.n_rows > MOST_ROWS:
            raise InvalidArgument(
                f"n_rows={self.n_rows} is more than the {MOST_ROWS} whose sums are exact. "
                "Fit on a sample of the rows."
            )
        if self.bounds.y is None:
            raise InvalidArgument(
                "The bounds say nothing about y: taking its range from the data would reveal it. "
                "Pass bounds=Bounds(x=..., y=...)."
            )
        check_adjacency(self.adjacency)
        self.bounds.check_size(self.n_features)
        object.__setattr__(self, "set", self.set.sized(self.n_features))

    def gradient(self, theta: Vector) -> Gradient:
        """The gradient of the empirical risk at theta, unevaluated."""
        return Gradient(theta, self.loss, self.bounds, self.n_rows, self.adjacency)

    def frank_wolfe_path(self, steps: int) -> FrankWolfePath:
        """The utilities of the set's vertices along a Frank-Wolfe path of so many steps."""
        assert isinstance(self.set, CoordinatePolytope)
        return FrankWolfePath(self.loss, self.set, self.bounds, self.n_rows, self.adjacency, steps)

    def clipped_gradient(self, theta: Vector, clip: float) -> ClippedGradient:
        """The same with each row's part shortened to a length of at most `clip`."""
        return ClippedGradient(theta, self.loss, self.bounds, self.n_rows, self.adjacency, clip)

    def step(self, theta: Vector, rate: float) -> GradientStep:
        """Where a step along the gradient leads from theta, unevaluated."""
        return GradientStep(self.gradient(theta), rate)

    def minimum(self) -> Minimum:
        """Where the regularised risk is smallest over the set, unevaluated."""
        return Minimum(
            self.loss, self.set, self.bounds, self.n_rows, self.adjacency, self.fit_intercept
        )

    def slope_sizes(self, theta: Vector) -> SlopeSizes:
        """How large the slopes at theta are."""
        return SlopeSizes(self.mean_slope(theta))

    def entry_sizes(self, parts: int = PARTS) -> EntrySizes:
        """How large the entries of a row are that are not 0, in `parts` bins a power of two."""
        return EntrySizes(self.bounds, self.n_rows, self.adjacency, parts)

    def length_sizes(self, support: Support) -> LengthSizes:
        """How long the rows are on a support."""
        return LengthSizes(support, self.n_rows, self.adjacency)

    def limited_slope(self, theta: Vector, limit: float) -> LimitedSlope:
        """The derivative in the intercept, of slopes that are clipped at a limit."""
        return LimitedSlope(*self._at(theta), limit)

    def correlations(self, theta: Vector, limit: float, entry_limit: float) -> Correlations:
        """The gradient in units of the columns' bounds, with slopes and entries clipped."""
        return Correlations(*self._at(theta), limit, entry_limit)

    def coordinate(
        self, theta: Vector, limit: float, entry_limit: float, column: int
    ) -> Coordinate:
        """One of the correlations, and how fast it falls."""
        return Coordinate(*self._at(theta), limit, entry_limit, column)

    def support_gradient(
        self, theta: Vector, limit: float, support: Support, length: float, constant: float
    ) -> SupportGradient:
        """The gradient on a support, with slopes clipped and rows shortened."""
        return SupportGradient(*self._at(theta), limit, support, length, constant)

    def support_curvature(
        self, theta: Vector, limit: float, support: Support, length: float, constant: float
    ) -> SupportCurvature:
        """The second derivatives on a support, of the same."""
        return SupportCurvature(*self._at(theta), limit, support, length, constant)

    def column_sums(self) -> ColumnSums:
        """The mean of every column, in units of its bound."""
        return ColumnSums(self.bounds, self.n_features, self.n_rows, self.adjacency)

    def column_squares(self, entry_limit: float) -> ColumnSquares:
        """The mean square of every column, of entries that are clipped."""
        return ColumnSquares(self.bounds, self.n_features, self.n_rows, self.adjacency, entry_limit)

    def centred_gradient(
        self, theta: Vector, limit: float, scaling: Scaling, length: float
    ) -> CentredGradient:
        """The gradient of centred and scaled rows, with slopes clipped and rows shortened."""
        return CentredGradient(*self._at(theta), limit, scaling, length)

    def improvement(self, theta: Vector, reference: Vector, most: float) -> Improvement:
        """How much better theta fits than a reference, with losses clipped."""
        return Improvement(*self._at(theta), reference, most)

    def class_counts(self, n_classes: int) -> ClassCounts:
        """The part of the rows in each class."""
        return ClassCounts(n_classes, self.n_rows, self.adjacency)

    def margin_counts(self, theta: Vector) -> MarginCounts:
        """How many rows of either label have margins of which size and sign."""
        return MarginCounts(*self._at(theta))

    def margin_slopes(self, theta: Vector, cut: float, line: tuple[float, float]) -> MarginSlopes:
        """The derivatives of the risk in a line through the cut margins."""
        return MarginSlopes(*self._at(theta), cut, line)

    def class_sums(self, part: float) -> SumsByClass:
        """The rows of each class added up, and beside them a constant that counts them."""
        return SumsByClass(
            self.loss, self.bounds, self.n_rows, self.n_features, self.adjacency, part
        )

    def score_counts(self, theta: Vector, centre: float, spread: float) -> ScoreCounts:
        """How many rows of each class have which margin under theta."""
        return ScoreCounts(*self._at(theta), centre, spread)

    def _at(self, theta: Vector) -> tuple[Vector, Loss, Bounds, int, str]:
        return theta, self.loss, self.bounds, self.n_rows, self.adjacency

    def mean_slope(self, theta: Vector) -> MeanSlope:
        """The derivative of the empirical risk in the intercept, unevaluated."""
        return MeanSlope(theta, self.loss, self.bounds, self.n_rows, self.adjacency)

    @property
    def y_bound(self) -> float:
        assert self.bounds.y is not None
        return self.bounds.y

    @property
    def offset_bound(self) -> float:
        """The largest |intercept| that a solver may visit."""
        return self.loss.offset_bound(self.y_bound) if self.fit_intercept else 0.0

    @property
    def margin_bound(self) -> float:
        """The largest |margin| over all rows inside the bounds and all theta in the set."""
        return self.set.reach(self.bounds) + self.offset_bound

    @property
    def slope_bound(self) -> float:
        """The largest |slope| over all rows inside the bounds and all theta in the set."""
        return self.loss.slope_bound(self.margin_bound, self.y_bound)

    @property
    def worst_excess_risk(self) -> float:
        """The largest difference of the risks of two models in the set."""
        return 2 * self.slope_bound * self.margin_bound

    def worst_sensitivity(self, row_length: float) -> float:
        """The largest change between neighbours of a mean of slope * x, anywhere in the set.

        For planning only: a release uses the sensitivity at its own iterate, which is smaller.
        """
        changed = CHANGED_CONTRIBUTIONS[self.adjacency]
        return changed * self.slope_bound * row_length / self.n_rows

    @property
    def curvature(self) -> float:
        """A bound on the curvature constant of the risk over the set (Definition 2.1).

        The loss's second derivative times the square of the largest change of a margin between
        two points of the set. For the mean squared loss this is 2 max ||A(a - b)||^2.
        """
        change = 2 * self.set.reach(self.bounds)
        return self.loss.curvature_bound(self.y_bound) * change**2

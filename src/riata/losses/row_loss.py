from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.losses.base import Loss
from riata.privacy.budget import check_number, check_scale
from riata.row_norms import conjugate

#: A function of (theta, x, y): a model, one row and its target.
OfRow = Callable[[np.ndarray, np.ndarray, float], Any]

#: The exponents of norms that have a name.
_ORDERS = {"l1": 1.0, "l2": 2.0}

#: Filters of warnings belong to the whole process, so one block of rows at a time changes them.
_FILTERS = threading.Lock()


@dataclass(frozen=True, eq=False)
class RowLoss(Loss):
    """A loss l(theta; x, y) of a model and a whole row, given by its gradient in theta.

    For what is no function of a margin: a bilinear model, a distance, a penalised likelihood. The
    gradient of each row is computed by itself and clipped to what is declared, so a declaration
    that is wrong costs accuracy and no privacy.

    Parameters
    ----------
    gradient : callable
        ``gradient(theta, x, y)``: arrays of shape (n_features,) and a number, read-only; returns
        the gradient in theta, of shape (n_features,). It is called with one row at a time, must
        depend on its arguments alone, and must not write or print what it sees. A row for which it
        fails counts as 0, and nobody is told.
    lipschitz : float
        The Lipschitz constant of l in theta. Longer gradients are clipped. Public.
    norm : {"l1", "l2"} or float, default="l1"
        The norm of theta that `lipschitz` and `smoothness` refer to; a number q is the lq norm.
        With "l1" each entry of a gradient is at most `lipschitz`, with "l2" its Euclidean length,
        and with q its lr norm, 1/q + 1/r = 1.
    smoothness : float, default=inf
        The Lipschitz constant of the gradient: from `norm` to its dual norm. It decides the number
        of steps and the expected risk, and nothing about privacy. Public.
    value : callable, optional
        ``value(theta, x, y)``, the loss itself, for `risk`.
    name : str, default="given"
        What plans and Statements call it.

    Notes
    -----
    *Privacy.* Proven for Frank-Wolfe, Gaussian Frank-Wolfe and noisy gradients, which see clipped
    gradients alone. Solvers whose guarantee needs a curvature refuse it.
    """

    gradient: OfRow
    lipschitz: float
    norm: str | float = "l1"
    smoothness: float = math.inf
    value: OfRow | None = None  # type: ignore[assignment]
    name: str = "given"

    assumes = "the loss is convex and its declared constants are true"

    def __post_init__(self) -> None:
        for name in ("gradient", "value"):
            given = getattr(self, name)
            if not callable(given) and not (name == "value" and given is None):
                raise InvalidArgument(
                    f"{name} must be a function of (theta, x, y), got {type(given).__name__}."
                )
        named = isinstance(self.norm, str)
        if self.norm not in _ORDERS if named else not check_number("norm", self.norm) >= 1:
            raise InvalidArgument(
                f"norm={self.norm!r} is not known: it says in which norm of theta the loss is "
                'Lipschitz. Use "l1", "l2" or a number of at least 1.'
            )
        check_scale("lipschitz", self.lipschitz, "gradients are clipped to it.")
        if not check_number("smoothness", self.smoothness) >= 0:
            raise InvalidArgument(f"smoothness={self.smoothness!r} must not be negative.")
        if not isinstance(self.name, str):
            raise InvalidArgument(f"name must be a text, got {type(self.name).__name__}.")

    @property
    def gradient_bounds(self) -> Bounds:
        order = _ORDERS[self.norm] if isinstance(self.norm, str) else float(self.norm)
        return Bounds(self.lipschitz, norm=conjugate(order))

    def gradients(self, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The gradient at each row, computed from that row alone; 0 where the function fails."""
        found = np.zeros(x.shape)
        with _FILTERS:
            for i in range(len(x)):
                with _no_warnings():
                    try:
                        found[i] = self._called(theta, x[i], y[i])
                    except KeyboardInterrupt:
                        raise
                    except BaseException:  # whatever it is, it would tell of a row
                        continue
        return found

    def risk(self, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        """The mean of `value` over rows. NOT PRIVATE."""
        if self.value is None:
            raise InvalidArgument("This RowLoss has no value. Pass value=... to compute risks.")
        theta = np.asarray(theta, dtype=np.float64)
        return float(np.mean([self.value(theta, *row) for row in zip(x, y, strict=True)]))

    def check(self, theta: np.ndarray, bounds: Bounds) -> None:
        """Raise unless the gradient is one at a few rows that are made up. Reads no data."""
        rows, targets = _made_up(len(theta), bounds)
        calls = list(zip(rows, targets, strict=True))
        try:
            there = [self._called(theta, *call) for call in calls]
            back = [self._called(theta, *call) for call in reversed(calls)][::-1]
        except Exception as problem:
            raise InvalidArgument(
                f"The gradient of the {self.name} loss fails at a row that is made up of bounds "
                f"and zeros: {type(problem).__name__}: {problem}"
            ) from problem
        if not np.isfinite(there).all():
            raise InvalidArgument(
                f"The gradient of the {self.name} loss is not finite at a row that is made up of "
                "bounds and zeros. It must be, at every row inside the bounds."
            )
        if not np.array_equal(there, back):
            raise InvalidArgument(
                f"The gradient of the {self.name} loss gives two answers for the same model and "
                "row: it draws random numbers or remembers earlier rows, and what it remembers "
                "would not be protected. Make it a function of its arguments alone."
            )

    def _called(self, theta: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
        return _shaped(self.gradient(_read_only(theta), _read_only(x), float(y)), theta.shape)

    # As a gradient of slope 1 along "rows" of the length that was declared.

    def slope_bound(self, margin: float, y: float) -> float:
        return 1.0

    def curvature_bound(self, y: float) -> float:
        return self.smoothness / self.lipschitz**2

    def offset_bound(self, y: float) -> float:
        return 0.0

    def slope(self, margin: np.ndarray, y: np.ndarray) -> NoReturn:
        raise InvalidArgument(
            f"The {self.name} loss is a function of whole rows and has no slope at a margin. Use a "
            "loss of margins here, such as Squared()."
        )

    curvature = slope

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """None: it has no margins, which the matrices are about, and code has no identity."""
        return ()


def _read_only(values: np.ndarray) -> np.ndarray:
    """A copy of its own, always at the same place in a line of the cache: so are its sums."""
    size = len(values)
    memory = np.empty(size + 8)
    first = -memory.ctypes.data // 8 % 8
    copy = memory[first : first + size]
    copy[:] = values
    copy.flags.writeable = False
    return copy


def _shaped(gradient: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.array(gradient, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"a gradient has shape {shape}, and this one {found.shape}")
    return found


@contextmanager
def _no_warnings() -> Iterator[None]:
    """No warning, whatever the code of other people does: it would tell of a row.

    For one row at a time: what that code changes in filters is undone before the next row.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.showwarning = _show_nothing
        yield


def _show_nothing(*warning: object, **more: object) -> None:
    """In place of `warnings.showwarning`."""


def _made_up(size: int, bounds: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Rows inside the bounds that say nothing about any data, and their targets."""
    largest = np.array(bounds.per_column(size)) / size ** (1 / bounds.order)
    signs = np.where(np.arange(size) % 2 == 0, 1.0, 0.0 if bounds.nonnegative else -1.0)
    rows = np.array([0 * largest, largest, largest * signs, largest / 3])
    y = bounds.y if bounds.y is not None else 1.0
    return rows, np.array([0.0, y, -y, y])

"""What the paper's learners share: seeds, checks, and the Statement of what devices send."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from riata.arguments import check_whole
from riata.errors import InvalidArgument
from riata.local.paper.private_vector import composed_event, exact_epsilon
from riata.mechanisms.noise import Noise
from riata.numeric import as_numbers, as_targets
from riata.privacy.budget import REPLACE_ONE
from riata.privacy.statement import Statement

SIMULATED = (
    "simulated locally: one process ran every device, so it has seen every row. The guarantee is "
    "that of devices which send only their reports."
)
CLIPPED = "Missing values count as 0, and each device clips its row before it is sent."

#: How many numbers of the rows are worked on at a time.
AT_ONCE = 2**22

#: Entries beyond this are as good as infinite.
_HUGE = 1e100


class PaperLearner(BaseEstimator):
    """A reference learner: devices that send reports, and a server that learns from them."""

    epsilon: float
    delta: float
    random_state: int | None
    privacy_: Statement

    #: The algorithm, for the Statement.
    algorithm: str

    def _noise(self) -> Noise:
        if self.random_state is None:
            return Noise()
        return Noise(check_whole("random_state", self.random_state, "it seeds the noise", 0))

    def _at_each(self, epsilons: Iterable[float]) -> dict[float, Self]:
        """This learner as people had it who chose their own epsilons."""
        learners = {float(e): clone(self).set_params(epsilon=float(e)) for e in epsilons}
        if not learners:
            raise InvalidArgument("There are no groups. Pass reports by the epsilon they cost.")
        return learners

    def _statement(
        self,
        vectors: Sequence[tuple[Any, int]],
        public: dict[str, Any],
        device_noise: Noise | None,
        notes: tuple[str, ...] = (),
        composition: str = "basic",
    ) -> Statement:
        """The guarantee of one device that sends each private vector as often as it says.

        `device_noise` is the noise of the devices, if this process has simulated them.
        """
        event = composed_event([v.noise_multiplier for v, _ in vectors], [k for _, k in vectors])
        exact = exact_epsilon(event, self.delta)
        if composition == "basic" and len(event.parts) > 1:
            notes = (
                f"By exact composition the reports of one device cost epsilon {exact:.4g}.",
                *notes,
            )
        return Statement(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            adjacency=REPLACE_ONE,
            solver=self.algorithm,
            steps=sum(k for _, k in vectors),
            accountant=f"{composition} composition of what one device sends",
            releases=tuple(f"{v}, {k} from each person" for v, k in vectors),
            public=public,
            seeded=device_noise is not None and device_noise.seeded,
            notes=(*((SIMULATED,) if device_noise else ()), CLIPPED, *notes),
        )


def of_several(stated: Statement, epsilons: Iterable[float]) -> Statement:
    """The Statement of people who chose their own epsilons."""
    chosen = sorted(epsilons)
    note = f"Each person chose one of epsilon {', '.join(f'{e:g}' for e in chosen)}."
    return replace(stated, epsilon=max(chosen), notes=(*stated.notes, note))


def check_rows(X: Any, y: Any = None) -> tuple[Any, np.ndarray]:
    """Rows and targets of matching shapes; no value is looked at."""
    X = numbers("X", X)
    if X.ndim != 2 or 0 in X.shape:
        raise InvalidArgument(
            f"X has shape {X.shape}: every person has one row of at least one column. "
            "Pass a two-dimensional array."
        )
    y = np.zeros(X.shape[0]) if y is None else as_targets(y).astype(np.float64, copy=False)
    if y.shape != (X.shape[0],):
        raise InvalidArgument(
            f"y has shape {y.shape} and X {X.shape[0]} rows: every person has one target. "
            "Pass one number for each row."
        )
    return X, y


def numbers(name: str, values: Any) -> Any:
    """`values` as floats: dense, or as sparse rows. What is no number is missing."""
    found = as_numbers(values, name)
    if sparse.issparse(found):
        return sparse.csr_array(found, dtype=np.float64)
    return found.astype(np.float64, copy=False)


def one_row(x: Any) -> np.ndarray:
    """One person's row as a matrix with one row."""
    x = as_targets(x, "x").astype(np.float64, copy=False)
    if x.ndim != 1 or x.size == 0:
        raise InvalidArgument(
            f"x has shape {x.shape}: a device reports one row. Pass a one-dimensional array."
        )
    return x[None, :]


def finite_rows(rows: Any) -> np.ndarray:
    """Dense rows of numbers whose products are numbers: NaN is 0, and nothing is huge."""
    dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
    return np.clip(np.nan_to_num(dense, nan=0.0), -_HUGE, _HUGE)

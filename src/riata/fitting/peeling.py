"""Peeling of any vector that is a bounded mean over rows: Algorithm 5 of Wang's lecture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from riata.arguments import check_known, is_whole
from riata.bounds import Bounds
from riata.curator import Curator
from riata.data.arrays import rows
from riata.engines.choice import Arrays, check_engine, open_engine
from riata.errors import InvalidArgument
from riata.fitting.arguments import budget_of, check_ledger, seed_from
from riata.fitting.statement import CLIPPING_NOTE, DELTA_NOTE, default_delta_note
from riata.identity import canonical, digest
from riata.mechanisms import Peeling
from riata.mechanisms.noise import Noise
from riata.preparation import Preparation
from riata.privacy.accountants import spent
from riata.privacy.budget import REPLACE_LABEL, REPLACE_ONE, Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.statement import Statement
from riata.queries import MeanVector
from riata.solvers.peeling import peeling_at
from riata.vectors import Vector

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Peeled:
    """The largest entries of a private vector.

    Attributes
    ----------
    vector : Vector
        The released entries; the others are 0. ``vector.dense()`` is an array.
    statement : Statement
        The guarantee.
    """

    vector: Vector
    statement: Statement

    @property
    def indices(self) -> np.ndarray:
        """Which entries were selected, in increasing order."""
        return self.vector.support

    @property
    def values(self) -> np.ndarray:
        """Their values, with noise."""
        return self.vector.values


def peel(
    X: Any,
    sparsity: int,
    epsilon: float,
    delta: float | None = None,
    *,
    bounds: Bounds,
    values: str = "auto",
    adjacency: str = REPLACE_ONE,
    ledger: Ledger | None = None,
    engine: str = "auto",
    random_state: Any = None,
) -> Peeled:
    """The largest entries of the mean of the rows, and their values: which ones is private too.

    Any vector v(D) that is a mean of bounded functions of single rows is the mean of the rows of
    some X: put each row's function value there.

    Parameters
    ----------
    X : array-like or sparse of shape (n_rows, n_entries)
        What each row adds to the vector.
    sparsity : int
        How many entries are released.
    epsilon : float
    delta : float, optional
        0 asks for pure differential privacy. If it is not given it is the smaller of 1e-6 and a
        tenth of 1 / n_rows.
    bounds : Bounds
        How far a row of X may reach. Rows are clipped into it, so the guarantee holds for all.
    values : {"auto", "gaussian", "laplace"}, default="auto"
        The noise on the values. "auto" is Gaussian where delta is positive.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    ledger : Ledger, optional
        What is charged, before a row is read.
    engine : str, default="auto"
    random_state : int, optional
        Makes the release reproducible, for tests. It is marked as not private then.

    Returns
    -------
    Peeled

    Notes
    -----
    *Privacy.* The rows are read twice: by the selection, and by the noisy values of the entries
    that were selected. Half of the budget goes to each.

    *Differences from the paper.* One draw of Gumbel noise in place of rounds of Laplace noise, and
    the noise comes from an accountant.

    References
    ----------
    Cai, Wang, Zhang (2019). The cost of privacy. Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, peel
    >>> X = np.zeros((5_000, 100))
    >>> X[:, 7], X[:, 40] = 0.8, -0.5
    >>> found = peel(X, 2, epsilon=1.0, delta=1e-6, bounds=Bounds(x=1.0))
    >>> found.indices.tolist()
    [7, 40]
    """
    check_engine(engine)
    check_ledger(ledger, random_state)
    seed = seed_from(random_state)
    if not isinstance(bounds, Bounds):
        raise InvalidArgument(f"bounds must be a Bounds, got {type(bounds).__name__}.")
    x = rows(BaseEstimator(), X, reset=True)
    n, size = x.shape
    bounds.check_size(size)
    budget = budget_of(epsilon, delta, adjacency, n)
    if adjacency == REPLACE_LABEL:
        raise InvalidArgument(
            'adjacency="replace-label" protects targets, and these rows have none: a mean of '
            "public rows needs no noise. Leave adjacency out to protect the rows."
        )
    mechanism = _planned(budget, sparsity, size, values)
    query = MeanVector(bounds, size, n, adjacency)
    facts = {"peel": canonical([query, mechanism, budget, seed])}
    request = digest(facts)
    summary = {"estimator": "peel", "sparsity": sparsity, "rows": n, "columns": size}
    noise = Noise(seed)
    curator = Curator.open(
        mechanism.event,
        read=lambda: open_engine(engine, Preparation(bounds), Arrays(x, np.zeros(n))),
        noise=noise,
        adjacency=adjacency,
        ledger=ledger,
        summary=summary | {"request": request},
    )
    found = curator.release(query, mechanism)
    curator.close()
    notes = (default_delta_note(budget.delta),) if delta is None else ()
    return Peeled(found, _statement(query, mechanism, budget, noise.seeded, request, notes))


def _planned(budget: Budget, sparsity: int, size: int, values: str) -> Peeling:
    """The mechanism that spends the budget."""
    if not is_whole(sparsity):
        raise InvalidArgument(f"sparsity={sparsity!r} must be a whole number.")
    if not 1 <= sparsity <= size:
        raise InvalidArgument(f"sparsity={sparsity} must lie between 1 and the {size} entries.")
    check_known("values", values, ("auto", "gaussian", "laplace"))
    if values == "gaussian" and budget.delta == 0:
        raise InvalidArgument(
            'values="gaussian" has no pure guarantee. Use values="laplace", or a positive delta.'
        )
    if not np.isfinite(budget.epsilon):
        raise InvalidArgument("epsilon must be finite: without noise nothing is protected.")

    def at(strength: float) -> Peeling:
        return peeling_at(strength, budget, int(sparsity), values == "laplace")

    return at(calibrate(lambda strength: at(strength).event, budget))


def _statement(
    query: MeanVector,
    mechanism: Peeling,
    budget: Budget,
    seeded: bool,
    request: str,
    notes: tuple[str, ...],
) -> Statement:
    total = spent(mechanism.event, budget.delta)
    if total.delta * query.n_rows >= 1:
        notes = (DELTA_NOTE, *notes)
    return Statement(
        epsilon=total.epsilon,
        delta=total.delta,
        adjacency=budget.adjacency,
        solver="peel",
        steps=1,
        accountant=total.accountant,
        releases=(mechanism.describe(1),),
        public={
            "rows": query.n_rows,
            "columns": query.size,
            "bounds": repr(query.bounds),
            "sparsity": mechanism.select.k,
        },
        seeded=seeded,
        notes=(CLIPPING_NOTE, *notes),
        request=request,
    )

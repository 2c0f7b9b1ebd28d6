"""Packages beside the peers of the arena, where they are installed.

diffprivlib is in the bench group; DP-EBM needs interpret-core. They get the same bounds and
epsilon; diffprivlib spends no delta. Their neighbours differ by a row that is added or
removed, or is replaced, as each of them has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import diffprivlib.models as ibm
except ImportError:
    ibm = None

try:
    from interpret.privacy import (
        DPExplainableBoostingClassifier,
        DPExplainableBoostingRegressor,
    )
except ImportError:
    DPExplainableBoostingClassifier = None

from arena_data import Table

#: More columns take these packages too long.
MOST_COLUMNS = 130

Package = Callable[[Table, Any, np.ndarray, Any, float, float, int], np.ndarray]


def dp_ebm(
    table: Table, x: Any, y: np.ndarray, held: Any, epsilon: float, delta: float, seed: int
) -> np.ndarray:
    """DP-EBM (Nori and others 2021), with its own settings."""
    p = x.shape[1]
    common = {
        "epsilon": epsilon, "delta": delta, "random_state": seed, "n_jobs": 1,
        "privacy_bounds": dict.fromkeys(range(p), (-1.0, 1.0)), "feature_types": ["continuous"] * p,
    }  # fmt: skip
    if table.n_classes == 2:
        model = DPExplainableBoostingClassifier(**common).fit(x, y)
        return np.asarray(model.decision_function(held))
    most = table.bounds.y
    model = DPExplainableBoostingRegressor(
        **common, privacy_target_min=-most, privacy_target_max=most
    )
    return np.asarray(model.fit(x, y).predict(held))


def diffprivlib(
    table: Table, x: Any, y: np.ndarray, held: Any, epsilon: float, delta: float, seed: int
) -> np.ndarray:
    """LinearRegression and LogisticRegression of diffprivlib."""
    if table.n_classes == 2:
        longest = table.bounds.row_norm("l2", x.shape[1])
        model = ibm.LogisticRegression(epsilon=epsilon, data_norm=longest, random_state=seed)
        return np.asarray(model.fit(x, y).decision_function(held))
    most = table.bounds.y
    model = ibm.LinearRegression(
        epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-most, most), random_state=seed
    )
    return np.asarray(model.fit(x, y).predict(held))


def packages_for(table: Table) -> dict[str, Package]:
    """Those that are installed and can fit such a table."""
    if table.n_classes > 2 or table.x.shape[1] > MOST_COLUMNS:
        return {}
    found: dict[str, Package] = {}
    if DPExplainableBoostingClassifier is not None:
        found["DP-EBM"] = dp_ebm
    if ibm is not None:
        found["diffprivlib"] = diffprivlib
    return found


def quietly(call: Callable[[], np.ndarray]) -> np.ndarray | None:
    """What a package predicts, or None if it fails on these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception:  # a package's own errors are no result of ours
            return None

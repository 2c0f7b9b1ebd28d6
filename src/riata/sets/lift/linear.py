"""The smallest l1 norm, or the smallest sum of weights: a linear program by column generation."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, nnls

from riata.sets.lift.equations import MISS, Equations
from riata.vectors import length


def fewest(equations: Equations, signed: bool) -> np.ndarray | None:
    """The solution with the smallest sum of sizes, all of them non-negative unless `signed`.

    A linear program over a few columns gives a price to each equation. A column that is worth more
    than it costs at these prices comes in, and when there is none the prices prove that no other
    column can help. The first program finds some solution, the second one the smallest.
    """
    master = Master(equations, signed)
    if not master.reach():
        return None
    return master.shrink()


class Master:
    """The columns that are in, each with a sign, and the programs over them."""

    def __init__(self, equations: Equations, signed: bool) -> None:
        self.equations = equations
        self.signed = signed
        self.indices = np.empty(0, dtype=np.intp)
        self.signs = np.empty(0)
        self.entries = np.empty((len(equations.target), 0))
        # A typical column gets length 1, so that the tolerances of a program mean something.
        self.scale = np.sqrt(equations.size / len(equations.target))
        self.add(equations.target, -np.inf)

    def add(self, prices: np.ndarray, cost: float) -> bool:
        """Let in the columns that are worth the most, and say whether there were any."""
        worth = self.scale * self.equations.back(prices)
        signs = np.where(worth < 0, -1.0, 1.0) if self.signed else np.ones(len(worth))
        worth *= signs
        known = signs[self.indices] == self.signs
        worth[self.indices[known]] = -np.inf
        some = min(len(worth), max(50, 2 * len(prices)))
        best = np.argpartition(-worth, some - 1)[:some]
        best = np.sort(best[worth[best] > cost + MISS])
        if len(best) == 0:
            return False
        columns = self.scale * self.equations.columns(best) * signs[best]
        self.indices = np.append(self.indices, best)
        self.signs = np.append(self.signs, signs[best])
        self.entries = np.hstack([self.entries, columns])
        return True

    def program(self, costs: np.ndarray, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best weights and the prices that prove it; no weights if there are none."""
        tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        target = self.equations.target
        found = linprog(costs, A_eq=entries, b_eq=target, method="highs", options=tight)
        if found.x is None:
            return np.empty(0), np.empty(0)
        return found.x, found.eqlin.marginals

    def reach(self) -> bool:
        """Let in columns until they reach the target, or until none brings them nearer."""
        spare = np.eye(len(self.equations.target))
        while True:
            n = len(self.indices)
            costs = np.append(np.zeros(n), np.ones(2 * len(spare)))
            weights, prices = self.program(costs, np.hstack([self.entries, spare, -spare]))
            if weights[n:].sum() <= MISS:
                return True
            if not self.add(prices, 0.0):
                return False

    def shrink(self) -> np.ndarray | None:
        """Let in columns until none makes the solution smaller."""
        while True:
            weights, prices = self.program(np.ones(len(self.indices)), self.entries)
            if len(weights) == 0:
                return None
            if not self.add(self.central(weights, prices), 1.0):
                break
        weights = self.exact(weights)
        theta = np.zeros(self.equations.size)
        np.add.at(theta, self.indices, self.scale * self.signs * weights)
        return theta

    def central(self, weights: np.ndarray, prices: np.ndarray) -> np.ndarray:
        """The shortest prices that prove the same.

        When fewer columns are in use than there are equations, many prices are right. Those of the
        program lie in a corner, where columns that are not in seem worth far too much.
        """
        in_use = weights > 1e-7 * weights.max()
        used = self.entries[:, in_use]
        if used.shape[1] >= len(used):
            return prices
        even = np.linalg.lstsq(used.T, np.ones(used.shape[1]))[0]
        basis = np.linalg.qr(used)[0]
        others = self.entries[:, ~in_use]
        across = others - basis @ (basis.T @ others)
        # The shortest z with across'z <= room (Lawson and Hanson 1974, chapter 23).
        room = 1 - others.T @ even
        system = -np.vstack([across, room])
        goal = np.append(np.zeros(len(across)), 1.0)
        try:
            left = system @ nnls(system, goal)[0] - goal
        except RuntimeError:
            return prices
        if abs(left[-1]) < 1e-9:
            return prices
        central = even - left[:-1] / left[-1]
        right = np.abs(used.T @ central - 1).max() <= MISS
        return central if right and (others.T @ central).max() <= 1 + MISS else prices

    def exact(self, weights: np.ndarray) -> np.ndarray:
        """The same solution to rounding, from as few of the columns as will do."""
        target = self.equations.target
        for share in (1e-5, 1e-7, 1e-9):
            kept = np.flatnonzero(weights > share * weights.max())
            values = np.linalg.lstsq(self.entries[:, kept], target)[0]
            missed = length(target - self.entries[:, kept] @ values)
            if values.min() >= 0 and missed <= 1e-12:
                out = np.zeros(len(weights))
                out[kept] = values
                return out
        return weights

"""Algorithm 3 of Talwar, Thakurta and Zhang (2015): private Frank-Wolfe over any convex set."""

from __future__ import annotations

from dataclasses import dataclass

from riata.curator import Curator
from riata.mechanisms import GaussianMechanism, Mechanism
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import risk_gradient
from riata.solvers.intercept import Intercept
from riata.solvers.noisy_frank_wolfe import NoisyFrankWolfe
from riata.solvers.plan import Plan, count_steps
from riata.solvers.requirements import convex_set, positive_delta
from riata.solvers.solution import Callback, Solution
from riata.solvers.step_count import step_size


@dataclass(frozen=True)
class GaussianFrankWolfe(NoisyFrankWolfe):
    """Private Frank-Wolfe over any set with a linear minimisation oracle.

    Each step releases the whole gradient with Gaussian noise and hands it to the set's oracle.
    The error grows with the Gaussian width of the set, and with the Euclidean length that a row
    can have: for rows bounded only entry by entry that is sqrt(p) times the bound.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        "auto" takes the number that an explicit bound recommends. Public either way.

    Notes
    -----
    *Privacy.* The rows are read once a step, by the noisy gradient, and once more if there is an
    intercept. All Gaussian releases compose to one, whose (epsilon, delta) curve is exact.

    *Differences from the paper.* The printed variance 32 L_2 T log^2(n / delta) / (n epsilon)^2
    must have L_2^2 in place of L_2, and is then some 15 times more noise than the exact
    composition used here. The printed step 1 / (T + 2) leaves 37% of the weight on the start;
    the step is 2 / (t + 2), and 1 for a straight loss.

    References
    ----------
    Talwar, Thakurta, Zhang (2015). Nearly-optimal private LASSO. Algorithm 3, Theorem B.2.
    """

    name = "gaussian-frank-wolfe"
    role = "gradient"
    requirements = (convex_set, positive_delta())

    def oracle(self, strength: float, budget: Budget) -> Mechanism:
        return GaussianMechanism(1 / strength)

    def oracle_error(self, problem: Problem, mechanism: Mechanism) -> float:
        assert isinstance(mechanism, GaussianMechanism)
        sensitivity = problem.worst_sensitivity(
            problem.gradient_bounds.row_norm("l2", problem.n_features)
        )
        return 2 * mechanism.noise_multiplier * sensitivity * problem.set.gaussian_width().value

    def error_tail(self, problem: Problem, mechanism: Mechanism) -> tuple[float, float, bool]:
        error, width = self.oracle_error(problem, mechanism), problem.set.gaussian_width().value
        return error, error / width * problem.set.radius_in("l2"), False

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 3, line by line."""
        C, theta = problem.set, problem.set.start()  # line 1
        intercept = Intercept(plan, problem, curator)
        for t in count_steps(plan.steps, callback):  # line 2
            query = risk_gradient(problem, theta)
            gradient = curator.release(query, plan["gradient"])  # line 3: + b_t
            s = C.minimiser(gradient)  # line 3
            b = intercept.descend(theta, intercept.slope(theta), t)
            theta = theta.toward(s, step_size(problem, t)).with_offset(b)  # line 4
        return Solution(theta.with_offset(intercept.average), plan.steps)  # line 5

"""The kinds of tasks. One entry declares what devices, servers, plans and models do for a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The part of a row's squared length that the constant for the intercept takes.
INTERCEPT = 0.25
#: Vectors whose second moments are kept whole.
MOST_COLUMNS = 4096
#: The squared length that a number usually has, where 1 is the most that its bounds allow.
USUAL_SQUARE = 0.3


@dataclass(frozen=True)
class TaskKind:
    """What a task learns, and what follows from that.

    Attributes
    ----------
    name : str
    summary : str
        For people.
    targets : tuple of str
        The kinds of features that can be its target. Means have none.
    intercept : bool
        Whether a constant may take a part of each row.
    sparse : bool
        Whether most coefficients (or means) are taken to be 0: learners select, plans make up
        models of a few columns.
    family : str
        "logistic" or "poisson", where coefficients are those of log odds or of the logarithm of a
        mean: a name in `riata.local.learners.canonical.FAMILIES`.
    kernel : bool
        Whether rows become random Fourier features; then columns have no coefficients.
    wide : bool
        Whether more columns than `MOST_COLUMNS` are possible: second moments of all of them are
        not needed, or the columns are screened first.
    alternative : str
        Another kind for the same questions, which plans compare with.
    """

    name: str
    summary: str
    targets: tuple[str, ...] = ()
    intercept: bool = False
    sparse: bool = False
    family: str = ""
    kernel: bool = False
    wide: bool = False
    alternative: str = ""

    @property
    def logistic(self) -> bool:
        """Whether coefficients are those of log odds."""
        return self.family == "logistic"

    @property
    def regression(self) -> bool:
        """Whether a target is predicted."""
        return bool(self.targets)

    @property
    def coefficients(self) -> bool:
        """Whether columns have coefficients."""
        return self.regression and not self.kernel

    def shares(self, size: int) -> Mapping[str, float]:
        """Which questions devices are asked about `size` coordinates, and the part for each."""
        if not self.regression:
            return {"mean": 1.0}
        return {"joint": 1.0} if size <= MOST_COLUMNS else {"gram": 0.5, "cross": 0.5}


_ANY = ("number", "yes-no")
KINDS: dict[str, TaskKind] = {
    kind.name: kind
    for kind in (
        TaskKind("mean", "the mean of each column", wide=True),
        TaskKind("sparse-mean", "means, most of them 0", sparse=True, wide=True),
        TaskKind("linear", "a number", _ANY, intercept=True, alternative="lasso"),
        TaskKind(
            "lasso", "a number, from few columns", _ANY, True, sparse=True, alternative="linear"
        ),
        TaskKind(
            "sparse-linear", "a number, from few of very many columns", _ANY, True, sparse=True,
            wide=True,
        ),
        TaskKind("logistic", "yes or no", ("yes-no",), intercept=True, family="logistic"),
        TaskKind("poisson", "a count", ("number",), intercept=True, family="poisson"),
        TaskKind("kernel", "a smooth function", _ANY, kernel=True, wide=True),
    )
}  # fmt: skip

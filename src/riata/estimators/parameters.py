"""What the documentation says about parameters and attributes that several estimators have."""

from __future__ import annotations

import inspect
from string import Template
from typing import Any, TypeVar

from riata.estimators.base import BoundedModel

Estimator = TypeVar("Estimator", bound=type[Any])

_MAX_WEIGHT = """\
max_weight : float, optional
    The largest `sample_weight`, if `fit` is given one. Public: noise is scaled to it, and larger
    weights are clipped."""

#: In docstrings, `$name` stands for one of these.
TEXTS = {
    "epsilon": """\
epsilon : float
    The privacy budget, of all classes together. ``float("inf")`` fits without privacy, and the
    Statement says so.
delta : float, optional
    The probability with which epsilon may fail. 0 asks for pure differential privacy. If it is not
    given it is the smaller of 1e-6 and a tenth of 1 / n_rows.""",
    "bounds": """\
bounds : Bounds
    How far a row may reach: public, and required. Only numbers need a bound on y.""",
    "open_radius": """\
radius : float or "auto", default="auto"
    The largest l1 norm of the coefficients. Public. "auto" is 1000 over the largest bound on a
    column.""",
    "max_weight": _MAX_WEIGHT,
    "families": f"""\
radius : float or "auto", default="auto"
    The largest l1 norm of the coefficients of the logarithm of the mean. Public. "auto" is 5 over
    the largest bound on a column, 100 for solvers that refit and 1000 for those with a penalty of
    their own.
{_MAX_WEIGHT}
max_exposure : float, optional
    The largest `exposure`, if `fit` is given one. Public: larger ones are clipped.""",
    "least_mean": """\
least_mean : float or "auto", default="auto"
    Up to this mean the loss is straight. Public. "auto" is a thousandth of the bound on y.""",
    "solver": """\
solver : str or Solver, default="auto"
    A name from `riata.solvers.SOLVERS`, "auto", or a solver object. "auto" is the first of
    `riata.solvers.RULES` that applies, by public facts alone; a plan says which and why.""",
    "options": """\
steps : int or "auto", default="auto"
    The number of private steps. "auto" chooses it from public facts.
fit_intercept : bool, default=True
    Whether to fit an intercept, for a tenth of the budget.
unpenalized : array-like of str, int or bool, optional
    Columns that are always in the model, such as age and sex: they are fitted with those that are
    selected, and nothing pulls them to 0. Names of columns, or of features of a schema; indices; or
    one truth value for each column. Public. A schema may mark some too.
adjacency : {"replace-one", "add-remove", "replace-label"}, default="replace-one"
    Which data sets count as neighbours. With "replace-label" only targets are protected: all other
    columns, and who is in the data, are public.
ledger : Ledger, optional
    Where the fit is charged before a row is read.
engine : {"auto", "local", "numba", "numpy", "scan", "disk", "dask"}, default="auto"
    Where the rows are summed: in this process, on disk or at a Dask cluster, and whether long fits
    on sparse rows are compiled. "auto" goes by where the rows are and what is quicker.
random_state : int, optional
    Makes the fit reproducible, for tests. Such a model is marked as not private.
verbose : bool, default=False
    Whether to draw a progress bar.
data_quality : bool, default=False
    Whether to count, for a hundredth of the budget, the missing cells and those outside of bounds,
    choices and classes, for each column of a source. What stands out is a warning.""",
    "classes": """\
classes : array-like, or "observed"
    The labels: public, and required unless `y` is an array of booleans. A label that only one
    person has would reveal that person, so they are never silently read from the rows, not even
    from a categorical type; ``classes="observed"`` reads them from `y` and declares that the set of
    labels in `y` is public. A row with another label is in none of the classes: of three or more
    that are fitted together it counts for none, if each is fitted against the rest it counts
    against each, and with two it counts as the first.""",
    "ball": """\
class_weight : dict, "balanced" or None, default=None
    How much the rows of each class count. A dict has a public weight for some labels, and the
    others have 1. "balanced" makes all classes count alike: their counts are released privately,
    for a fiftieth of the budget. Noise grows with the largest weight.
penalty : {"auto", "l1", "l2"}, default="auto"
    The norm that `radius` bounds. "auto" is "l2" for rows with a bound on their length and a
    positive delta, and otherwise "l1", whose models are sparse.
radius : float or "auto", default="auto"
    The largest norm of a class's coefficients. Public. "auto" is 10 for "l1" (100 for solvers that
    refit), and for "l2" 800 over the bound on a row's length.""",
    "sparsity": """\
sparsity : int, default=10
    The largest number of columns in the model. Public.
radius : float, default=1.0
    The largest Euclidean length of the coefficients. Public.""",
    "projection": """\
dimension : int or "auto", default="auto"
    The number of dimensions that rows are projected to. "auto" follows from public facts.
projection : str, Projection or array-like, default="gaussian"
    "gaussian", "sparse-sign", "structured" (which stores no matrix), a `Projection`, or the matrix
    itself, with one column for each column of the data.
compressed : bool, default=False
    Whether `X` holds rows that are already projected, by the matrix that is given.
clip : float or "auto", default="auto"
    The largest length of a projected row; longer ones are shortened.
seed : int, default=0
    The public seed of the matrix.
solver : str or Solver, default="auto"
    The solver in the projected space: "noisy-gradient", "objective-perturbation",
    "posterior-sampling", or a solver object.""",
    "coefficients": """\
coef_ : ndarray of shape (n_features,)
intercept_ : float""",
    "class_coefficients": """\
classes_ : ndarray of shape (n_classes,)
class_weight_ : ndarray of shape (n_classes,)
    The weights that the classes had, the mean of a row's or of the given ones being 1.
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
intercept_ : ndarray of shape (1,) or (n_classes,)""",
    "fitted": """\
coef_error_, intercept_error_ : ndarray, float or ndarray
    Standard errors of `coef_` and `intercept_`, NaN where the solver says nothing about them.
coef_covariance_ : ndarray of shape (2, n_features + 1, n_features + 1), or one for each class
    If the solver says something about them: the covariances of `coef_` and, last, of the intercept,
    and the part of them that is a guess, in directions in which rows hardly vary. 0 for columns
    that were left out.
residual_spread_ : float
    Of a least-squares regression, if the solver estimates its fit: the root of the mean squared
    residual, from the same release. Large residuals are clipped in it.
selection_order_ : ndarray of int
    For each of `coef_`, its place in the order in which a search selected columns, from 1; 0 for
    columns that were not selected, and for solvers that do not select one by one.
unpenalized_ : ndarray of int
    The indices of the columns that were always in the model.
n_iter_ : int
    The number of steps of each fit, which is public.
data_quality_ : DataQuality
    With ``data_quality=True``: private counts of what is wrong with the rows.
privacy_ : Statement
    The guarantee.
n_features_in_, feature_names_in_ : int, ndarray
    As in scikit-learn.""",
    "local_epsilon": """\
epsilon : float
    What each report costs.""",
    "local_options": """\
random_state : int, optional
    For tests: marks the result "seeded: not private".
verbose : bool, default=False
    Show a progress bar.""",
    "local_fitted": """\
signal_ : bool
    Whether the reports show anything but noise. If not, a model predicts a constant.
task_, model_, privacy_ : Task, LocalModel, Statement""",
}


def documented(estimator: Estimator) -> Estimator:
    """Write these texts into the docstring of a dataclass, and list its own parameters first.

    Those of `BoundedModel` come before them.
    """
    if estimator.__doc__ is not None:
        estimator.__doc__ = Template(inspect.cleandoc(estimator.__doc__)).substitute(TEXTS)
    bounded = (BoundedModel,) if issubclass(estimator, BoundedModel) else ()
    declared = [inspect.get_annotations(kind) for kind in (*bounded, *estimator.__mro__)]

    def order(parameter: inspect.Parameter) -> tuple[int, int]:
        named = (k for k, names in enumerate(declared) if parameter.name in names)
        return parameter.kind, next(named, -1)  # self is declared nowhere

    signature = inspect.signature(estimator.__init__)
    parameters = sorted(signature.parameters.values(), key=order)
    estimator.__init__.__signature__ = signature.replace(parameters=parameters)
    return estimator

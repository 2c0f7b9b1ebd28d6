"""What a fit came to, in plain words, and what would help if it was little."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from riata.estimators.coefficients import INTERCEPT
from riata.estimators.description import ModelDescription

if TYPE_CHECKING:
    from riata.estimators.summary import Summary, Term

#: A number is told from 0 if it is so many standard errors away from it.
SURE = 2.0

#: A coefficient is told from 0, whatever the estimate of the fit says, if it is so many of its
#: standard errors away. Fits without any signal (labels that are none of the classes, targets that
#: are all clipped or missing) had none above 2.9 in 96 fits.
CLEAR = 5.0

#: The standard error of a fit is in units of the loss of the best constant. Above this the constant
#: leaves less than five standard deviations of the noise: nothing is left that a model could
#: explain, as when every row has the same label.
MOST_ERROR = 0.2

#: So many coefficients are named.
MOST_NAMES = 3


def advice(about: ModelDescription, summary: Summary) -> tuple[str, ...]:
    """Sentences about what could be learned; none if the model is as good as it looks.

    They follow from what was released and from public facts: no row is read.
    """
    problem = _problem(summary)
    return (problem, *_remedies(about, summary)) if problem else ()


def _problem(summary: Summary) -> str:
    """What is wrong with a model, or ""."""
    if not summary.functions:
        return ""
    if all(each.n_nonzero == 0 for each in summary.functions):
        return (
            "Nothing was learned: every coefficient is 0, and the model predicts the same for all "
            "rows. The noise hides what there is, or there is nothing: the model cannot tell which."
        )
    known = [(gain, error) for gain, error in summary.gains if math.isfinite(gain)]
    vague = known and all(gain < SURE * error or error > MOST_ERROR for gain, error in known)
    terms = [term for each in summary.functions for term in each.terms if term.name != INTERCEPT]
    tested = [abs(term.z) for term in terms if math.isfinite(term.z)]
    clear = [term.name for term in terms if _stands_out(summary, term)]
    if vague and clear:
        return (
            "How well the model predicts is not known: the noise of the private estimate of the "
            f"fit is too large. {_listed(clear)} can be told from 0 all the same: coefficients "
            "have a larger part of the budget."
        )
    if known and all(gain < SURE * error for gain, error in known):
        return (
            "Hardly anything was learned: the private estimate of the fit cannot be told from 0, "
            "which is that of a constant. Take the coefficients for noise."
        )
    if known and all(error > MOST_ERROR for _, error in known):
        return (
            "Hardly anything could be learned: as far as the noise shows, a constant is right "
            "about nearly every row, as if all had the same target. Take the coefficients for "
            "noise."
        )
    if len(tested) == len(terms) > 0 and max(tested) < SURE:
        if known:  # and told from 0
            return (
                "No single coefficient can be told from 0, although the model predicts better than "
                "a constant, as with correlated columns. Test several together: `model.test`."
            )
        return (
            "Hardly anything was learned: no coefficient can be told from 0. Take them for noise."
        )
    return ""


def _stands_out(summary: Summary, term: Term) -> bool:
    """Whether a coefficient is told from 0 whatever the fit says, and not only as one of many."""
    return abs(term.z) >= CLEAR and (summary.correction is None or summary.discovered(term))


def _listed(names: list[str]) -> str:
    """A few names of coefficients, and how many more there are."""
    shown, more = names[:MOST_NAMES], len(names) - MOST_NAMES
    if more > 0:
        shown.append(f"{more:,} more")
    if len(shown) == 1:
        return f"The coefficient of {shown[0]}"
    return f"The coefficients of {', '.join(shown[:-1])} and {shown[-1]}"


def _remedies(about: ModelDescription, summary: Summary) -> list[str]:
    """What would help, with the public facts that it would change."""
    facts = summary.glance
    rows, epsilon = facts["nobs"], facts["epsilon"]
    lines = [
        f"More rows (now {rows:,}) or a larger epsilon (now {epsilon:g}): twice the rows at the "
        "same epsilon, or twice the epsilon on the same rows, halve the noise. `riata plan` finds "
        "how many a score needs, and costs nothing.",
        f"Fewer columns (now {facts['n.columns']:,}), and tighter facts about them: bounds no "
        "wider than what can occur, and no narrower, a centre at the usual value, a bound on the "
        "length of a row. Take them from public knowledge, never from the rows.",
    ]
    if about.schema is not None and about.schema.classes is not None:
        labels = ", ".join(repr(label) for label in about.schema.classes.tolist()[:6])
        lines.append(
            f"Check that the file spells the classes as the schema does ({labels}): a row with "
            "another label is in none of them."
        )
    elif about.schema is not None and about.schema.target is not None:
        lines.append(
            f"Check that the column {about.schema.target.name!r} holds numbers: what is no number "
            "counts as the middle of the bounds."
        )
    return lines

"""The guarantee and the model card in words that need no mathematics."""

from __future__ import annotations

import math
from dataclasses import dataclass

from riata.privacy.budget import ADD_REMOVE, REPLACE_LABEL, REPLACE_PERSON, WEAK_EPSILON
from riata.privacy.statement import Statement


@dataclass(frozen=True)
class Tile:
    """A number to be read from afar."""

    value: str
    name: str


@dataclass(frozen=True)
class Guarantee:
    """A Statement for readers of contracts."""

    headline: str
    #: What is wrong, if the model is not private; otherwise "".
    alarm: str
    #: What weakens the promise, or "".
    warning: str
    #: What one person's row can change, sentence by sentence, and what is not promised.
    promise: tuple[str, ...]
    limits: tuple[str, ...]
    tiles: tuple[Tile, ...]


def guarantee(claim: Statement, simulated: bool) -> Guarantee:
    """What a Statement means."""
    if not math.isfinite(claim.epsilon):
        return Guarantee(
            "This model is not private",
            "It was fitted without noise. It can reveal single rows, so treat it like the data.",
            "", (), ("Nothing about privacy is promised.",), (),
        )  # fmt: skip
    if claim.adjacency == "local":
        headline, promise = "Every report protects the person who sent it", _local(claim)
        limits: tuple[str, ...] = _LOCAL_LIMITS
    elif claim.adjacency == REPLACE_LABEL:
        headline = "What any one target can change is limited. Everything else is not protected"
        promise, limits = _labels(claim), _LABEL_LIMITS
    elif claim.adjacency == REPLACE_PERSON:
        headline, promise = "What any one person can change is limited", _people(claim)
        limits = _PEOPLE_LIMITS
    else:
        headline, promise = "What any one row can change is limited", _central(claim)
        limits = _CENTRAL_LIMITS
    alarm = ""
    if claim.seeded:
        headline = "This model is not private: its noise is known"
        alarm = (
            "Its noise came from a known seed and can be computed again, so it hides nothing. "
            "What follows would hold for the same fit with secret noise."
        )
    return Guarantee(headline, alarm, _warning(claim, simulated), promise, limits, _tiles(claim))


def _warning(claim: Statement, simulated: bool) -> str:
    found = []
    if simulated:
        found.append(
            "This is a simulation: one computer held all rows and acted as every person's device. "
            "The promise is about the reports. It does not protect anybody from whoever held the "
            "rows."
        )
    if claim.epsilon > WEAK_EPSILON:
        found.append(
            f"An epsilon of {claim.epsilon:g} is large. The promise holds, and it protects little."
        )
    return " ".join(found)


def _central(claim: Statement) -> tuple[str, ...]:
    if claim.adjacency == ADD_REMOVE:
        first = "Whether any one row took part or not, no outcome of the fit would have been"
        secret = "whether one row took part, if both are equally likely,"
    else:
        first = "Had any one row been different, in whatever way, no outcome would have been"
        secret = "which of two equally likely rows was in the table"
    return (
        f"{first} more than {_factor(claim)} times as likely as it was{_plus(claim)}.",
        f"Somebody who sees the model, knows all the other rows and has to guess {secret} is right "
        f"at most {_guess(claim)} of the time. A coin is right half of the time.",
        _WHATEVER,
    )


def _people(claim: Statement) -> tuple[str, ...]:
    return (
        "Had any one person had other rows, all of them and in whatever way, no outcome would have "
        f"been more than {_factor(claim)} times as likely as it was{_plus(claim)}.",
        "Somebody who sees the model, knows the rows of everybody else and has to guess which of "
        f"two equally likely histories was one person's is right at most {_guess(claim)} of the "
        "time. A coin is right half of the time.",
        _WHATEVER,
    )


def _labels(claim: Statement) -> tuple[str, ...]:
    return (
        "Had the target of any one row been different, no outcome would have been more than "
        f"{_factor(claim)} times as likely as it was{_plus(claim)}. All other columns of the rows, "
        "and who is among them, were declared public: nothing is promised about them.",
        "Somebody who sees the model, knows all rows and all other targets and has to guess which "
        f"of two equally likely targets one row has is right at most {_guess(claim)} of the time. "
        "A coin is right half of the time.",
        _WHATEVER,
    )


def _local(claim: Statement) -> tuple[str, ...]:
    several = int(claim.public.get("reports of one person", 1)) > 1
    reports = "reports are" if several else "report is"
    return (
        "Answers were randomised on each person's own device before anything was sent. Whatever "
        f"one person answered, the {reports} at most {_factor(claim)} times as likely as with any "
        f"other answers{_plus(claim)}.",
        "Somebody who sees what one person sent and has to guess which of two equally likely "
        f"answers is the true one is right at most {_guess(claim)} of the time. A coin is right "
        "half of the time.",
        "This holds against everybody: the collector, the network, and whoever reads this page.",
    )


def _factor(claim: Statement) -> str:
    if claim.epsilon > math.log(1e9):
        return "more than a billion"
    factor = math.exp(claim.epsilon)
    if factor >= 100:
        return f"{math.ceil(factor):,}"
    digits = 2 if factor < 10 else 1
    return f"{math.ceil(factor * 10**digits) / 10**digits:.{digits}f}"


def _plus(claim: Statement) -> str:
    return f", plus a chance of {chance(claim.delta)}" if claim.delta > 0 else ""


def chance(delta: float) -> str:
    """A small probability in words."""
    return f"1 in {1 / delta:,.0f}" if 1e-18 < delta < 0.1 else f"{delta:.2g}"


def _guess(claim: Statement) -> str:
    """How often the best test of two equally likely neighbours is right, rounded up.

    Its total variation is at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).
    """
    odds = math.exp(-claim.epsilon)
    right = 100 * min(1.0, (1.0 + claim.delta * odds) / (1.0 + odds))
    for digits in range(1, 7):
        rounded = math.ceil(right * 10**digits) / 10**digits
        if rounded < 100:
            return f"{rounded:.{digits}f}%"
    return "100%"


def _tiles(claim: Statement) -> tuple[Tile, ...]:
    factor = _factor(claim).replace("more than a billion", "> 10⁹")
    added = f"an added chance of {chance(claim.delta)}" if claim.delta > 0 else "no added chance"
    changed, guessed = {
        "local": ("one person's answers", "answer"),
        REPLACE_LABEL: ("one target", "target"),
        REPLACE_PERSON: ("one person", "person"),
    }.get(claim.adjacency, ("one row", "row"))
    return (
        Tile(f"{claim.epsilon:g}", "epsilon, the privacy loss"),
        Tile(f"{claim.delta:g}", f"delta, {added}"),
        Tile(
            f"{factor} \N{MULTIPLICATION SIGN}", f"the most that {changed} can do to a probability"
        ),
        Tile(_guess(claim), f"the best guess about one {guessed}, against 50% for a coin"),
    )


_WHATEVER = (
    "This holds whatever is done with the model, however strong the computer, and whatever else is "
    "known."
)

_BOTH = (
    "It does not stop conclusions about people in general. If a model shows that smokers fall ill "
    "more often, that is true of a smoker who was never asked.",
    "It is not a promise that the model is right, useful or fair.",
    "It is mathematics and not a legal opinion: whether the data may be used at all is another "
    "question. It takes for granted that the software is correct and that nobody watched the "
    "computer while it ran.",
)

_CENTRAL = (
    "It covers this fit alone. Whatever else was made from the same rows adds to it.",
    "What is listed as public below is not protected.",
    *_BOTH,
)

_CENTRAL_LIMITS = (
    "It is about one row. A person with several rows, or a family that shares a secret, is "
    "protected less: for two rows epsilon is twice as large, and delta more than twice.",
    *_CENTRAL,
)

_LABEL_LIMITS = (
    "It does not protect the rows: if a column beside the target is secret, or who is in the data, "
    "this is the wrong promise.",
    "It is about one target. A person with several rows, or a family whose targets are alike, is "
    "protected less: for two targets epsilon is twice as large, and delta more than twice. What "
    "the public columns say about a target anyway stays said.",
    *_CENTRAL,
)

_PEOPLE_LIMITS = (
    "It is about one person, as the column of ids tells people apart. A person with two ids, or a "
    "family that shares a secret, is protected less: for two people epsilon is twice as large, and "
    "delta more than twice.",
    *_CENTRAL,
)

_LOCAL_LIMITS = (
    "It is about the reports of one person. Epsilon counts all that the task lets one person send; "
    "another task about the same things adds to it.",
    "That somebody took part, and when, can be seen by the collector.",
    *_BOTH,
)

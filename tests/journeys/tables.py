"""Small tables of the forms that people bring.

Real ones where they are packaged, or where the environment variable RIATA_DATA names their folder;
otherwise made-up rows of the same form.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

ADULT_SCHEMA = """
ignore_others = true

[[features]]
name = "age"
kind = "number"
bounds = [17, 90]

[[features]]
name = "education-num"
kind = "number"
bounds = [1, 16]

[[features]]
name = "hours-per-week"
kind = "number"
bounds = [0, 99]

[[features]]
name = "sex"
kind = "choice"
choices = ["Female", "Male"]

[[features]]
name = "marital-status"
kind = "choice"
choices = ["Married-civ-spouse", "Never-married", "Divorced"]

[target]
name = "income"
classes = ["<=50K", ">50K"]
"""
_NAMES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]


def adult(n=8000):
    """People, and whether they earn much."""
    folder = os.environ.get("RIATA_DATA")
    if folder and (Path(folder) / "adult_raw.csv.gz").exists():
        table = pd.read_csv(Path(folder) / "adult_raw.csv.gz", skipinitialspace=True, nrows=n)
        if "income" not in table:
            table = pd.read_csv(
                Path(folder) / "adult_raw.csv.gz", names=_NAMES, skipinitialspace=True, nrows=n
            )
        return table
    rng = np.random.default_rng(0)
    age, school, hours = rng.integers(17, 91, n), rng.integers(1, 17, n), rng.integers(1, 99, n)
    sex = rng.choice(["Female", "Male"], n)
    married = rng.choice(["Married-civ-spouse", "Never-married", "Divorced", "Widowed"], n)
    odds = 0.03 * (age - 40) + 0.35 * (school - 10) + 0.03 * (hours - 40) - 2
    odds = odds + 0.4 * (sex == "Male") + 2 * (married == "Married-civ-spouse")
    rich = rng.random(n) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame(
        {
            "age": age, "workclass": "Private", "education-num": school, "marital-status": married,
            "sex": sex, "hours-per-week": hours, "income": np.where(rich, ">50K", "<=50K"),
        }
    )  # fmt: skip


CLAIMS_SCHEMA = """
person = "member"
rows_of_a_person = 2

[[features]]
name = "age"
kind = "number"
bounds = [0, 110]

[[features]]
name = "smoker"
kind = "yes-no"

[target]
name = "cost"
bounds = [0, 10000]
"""


def claims(people=3000, seed=0):
    """Insurance claims: members have one to four of them."""
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(people), rng.integers(1, 5, people))
    age, smokes = rng.integers(18, 95, people)[member], (rng.random(people) < 0.3)[member]
    cost = 50 * age + 2500 * smokes + rng.normal(0, 500, len(member))
    return pd.DataFrame(
        {
            "member": [f"m{k}" for k in member], "age": age,
            "smoker": np.where(smokes, "yes", "no"), "cost": cost.round(),
        }
    )  # fmt: skip


ROWS_SCHEMA = CLAIMS_SCHEMA.replace(
    'person = "member"\nrows_of_a_person = 2\n', 'ignore = ["member"]\n'
)

"""Hospital stays from a CSV file with bad lines, where patients have several rows.

The rows are synthetic, in the form of the well-known diabetes data of 130 US hospitals. The schema
describes what could occur, and each patient counts as one row.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from riata import PrivateLasso, Schema, read

SCHEMA = """
person = "patient"
rows_of_a_person = 1             # one stay of each patient, drawn at random
ignore = ["encounter"]

[[features]]
name = "age"
kind = "choice"
choices = ["[0-20)", "[20-40)", "[40-60)", "[60-80)", "[80-100)"]

[[features]]
name = "medications"
kind = "number"
bounds = [0, 80]

[[features]]
name = "emergencies"
kind = "number"
bounds = [0, 20]
center = 0                       # most patients had none

[[features]]
name = "insulin"
kind = "choice"
choices = ["No", "Steady", "Up", "Down"]

[[features]]
name = "changed"
kind = "yes-no"

[target]
name = "days"
bounds = [1, 14]
"""


def stays(patients: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    visits = np.minimum(rng.geometric(0.7, patients), 20)
    who = np.repeat(np.arange(patients), visits)
    n = len(who)
    ages = np.array(["[0-20)", "[20-40)", "[40-60)", "[60-80)", "[80-100)"])
    old = rng.choice(5, n, p=[0.02, 0.08, 0.3, 0.45, 0.15])
    medications = np.clip(rng.normal(16, 8, n).round(), 1, 80).astype(int)
    emergencies = rng.poisson(0.3, n)
    insulin = rng.choice(["No", "Steady", "Up", "Down"], n)
    changed = rng.choice(["Yes", "No"], n)
    days = 1.5 + 0.14 * medications + 0.3 * old + 0.8 * (insulin == "Up") + rng.normal(0, 2, n)
    days = np.clip(days.round(), 1, 14).astype(int)
    columns = (np.arange(n), who, ages[old], medications, emergencies, insulin, changed, days)
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    lines[10], lines[20] = '"an open quote', "too,few,fields"
    header = "encounter,patient,age,medications,emergencies,insulin,changed,days"
    return "\n".join([header, *lines]) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, unseen = Path(folder) / "stays.csv", Path(folder) / "unseen.csv"
        file.write_text(stays(60_000, seed=0), encoding="utf-8")
        unseen.write_text(stays(10_000, seed=1), encoding="utf-8")
        schema = Schema.read(SCHEMA)
        source = read(file, schema)
        print(f"{source.n_rows} patients, {source.n_features} columns")
        model = PrivateLasso(epsilon=1.0, delta=1e-6).fit(source)
        print(model.privacy_)
        for name, effect in zip(model.feature_names_in_, model.coef_, strict=True):
            if effect:
                print(f"  {name:20} {effect:+.2f} days")
        print(f"R^2 on other patients: {model.score(read(unseen, schema)):.2f}")


if __name__ == "__main__":
    main()

"""From a file to a model: the default by schema, without any hint beside it.

Five random splits with a quarter held out, delta 1e-6. A schema has the kinds and the public bounds
of the columns, and nothing else. Beside the default: the fit of scikit-learn to the same encoding,
and DP-EBM (`pip install interpret-core`) on the same file with the same bounds, if it is installed.
Its neighbours are replaced rows, as riata's. Patients are people with several rows: the guarantee
is for a person (replace-person), and nobody is on both sides of a split.

    RIATA_DATA=<folder> python benchmarks/by_schema.py [--set adult ...] [--epsilon 0.3 1 3]
                                                       [--splits 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from riata import PrivateLasso, PrivateLogisticRegression, Schema, SchemaEncoder, read

from menu_data import FOLDER
from results import keep, show
from schema_knots import SETS, table_of

try:
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
except ImportError:
    DPExplainableBoostingClassifier = None

DELTA = 1e-6


@dataclass(frozen=True)
class File:
    """A data frame, its schema, the measure of a score, and the bounds that DP-EBM needs."""

    frame: pd.DataFrame
    schema: Schema
    measure: str
    numbers: dict[str, tuple[float, float]]

    @property
    def target(self) -> str:
        assert self.schema.target is not None
        return self.schema.target.name

    @property
    def labels(self) -> list[Any] | None:
        return None if self.schema.classes is None else self.schema.classes.tolist()

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Three quarters to fit and one to score; all rows of a person are on one side."""
        rng, person = np.random.default_rng(seed), self.schema.person
        units = self.frame[person] if person else pd.Series(range(len(self.frame)))
        names = rng.permutation(units.unique())
        held = units.isin(names[: len(names) // 4]).to_numpy()
        return self.frame[~held], self.frame[held]

    def score(self, held: pd.DataFrame, predicted: np.ndarray) -> float:
        """AUC of margins, accuracy of labels, or R2 of numbers."""
        truth = held[self.target]
        if self.measure == "R2":
            return float(r2_score(truth, predicted))
        assert self.labels is not None
        positive = (truth == self.labels[1]).to_numpy()
        if self.measure == "AUC":
            return float(roc_auc_score(positive, predicted))
        return float(accuracy_score(positive, predicted > 0))


def table(name: str) -> File:
    """A table of numbers and choices."""
    file, numbers, target, about = SETS[name]
    frame = pd.read_csv(FOLDER / file, skipinitialspace=True)
    schema = Schema.from_table(table_of(frame, numbers, target, about))
    return File(frame, schema, "R2" if "bounds" in about else "AUC", numbers)


def headlines() -> File:
    """Clickbait or not: a column of text."""
    frame = pd.read_json(FOLDER / "clickbait_headlines.jsonl.gz", lines=True)
    schema = {
        "features": [{"name": "text", "kind": "text"}],
        "target": {"name": "label", "classes": [0, 1]},
    }
    return File(frame, Schema.from_table(schema), "accuracy", {})


def patients() -> File:
    """Readmission after a stay in hospital: people with several stays."""
    frame = pd.read_csv(FOLDER / "diabetes130_raw.csv.gz", low_memory=False)
    frame = frame.drop(columns=["encounter_id", "weight", "payer_code"])
    frame["readmitted"] = np.where(frame["readmitted"] == "NO", "no", "yes")
    counts = {
        "time_in_hospital": (1, 14), "num_lab_procedures": (1, 132), "num_procedures": (0, 6),
        "num_medications": (1, 81), "number_outpatient": (0, 42), "number_emergency": (0, 76),
        "number_inpatient": (0, 21), "number_diagnoses": (1, 16),
    }  # fmt: skip
    hashed = ("diag_1", "diag_2", "diag_3", "medical_specialty")
    features: list[dict[str, Any]] = []
    for name in frame.columns.drop(["patient_nbr", "readmitted"]):
        if name in counts:
            features.append({"name": name, "kind": "count", "most": counts[name][1]})
        elif name in hashed:
            features.append({"name": name, "kind": "hash", "buckets": 128})
        else:
            frame[name] = frame[name].fillna("none").astype(str)
            choices = sorted(frame[name].unique())
            features.append({"name": name, "kind": "choice", "choices": choices})
    schema = {
        "features": features, "person": "patient_nbr", "rows_of_a_person": 1,
        "target": {"name": "readmitted", "classes": ["no", "yes"]},
    }  # fmt: skip
    return File(frame, Schema.from_table(schema), "AUC", {})


FILES: dict[str, Callable[[], File]] = {
    **{name: lambda name=name: table(name) for name in SETS},  # type: ignore[misc]
    "headlines": headlines,
    "patients": patients,
}


def default(file: File, epsilon: float, seed: int) -> float:
    train, held = file.split(seed)
    rows = read(train, file.schema)
    if file.labels is None:
        return file.score(
            held, PrivateLasso(epsilon, DELTA, random_state=seed).fit(rows).predict(held)
        )
    model = PrivateLogisticRegression(epsilon, DELTA, random_state=seed).fit(rows)
    return file.score(held, model.decision_function(held))


def without_privacy(file: File, epsilon: float, seed: int) -> float:
    """Ridge or logistic regression on the encoding that the fit at this epsilon has."""
    train, held = file.split(seed)
    of_people = ("person", "rows_of_a_person", "people")
    encoded = file.schema.for_fit(len(train), epsilon).table()
    rest = {k: v for k, v in encoded.items() if k not in of_people}
    encoder = SchemaEncoder(rest | {"ignore_others": True})
    x, z, y = encoder.fit_transform(train), encoder.transform(held), train[file.target]
    if file.labels is None:
        return file.score(held, Ridge(1e-3).fit(x, y).predict(z))
    model = LogisticRegression(C=10.0, max_iter=1_000).fit(x, (y == file.labels[1]).astype(int))
    return file.score(held, model.decision_function(z))


def dp_ebm(file: File, epsilon: float, seed: int) -> float:
    """DP-EBM (Nori and others 2021) with its own settings. No text, and no people."""
    train, held = file.split(seed)
    missing = {name: low for name, (low, _) in file.numbers.items()}  # it takes none
    x, z = (each.drop(columns=file.target).fillna(missing) for each in (train, held))
    y = train[file.target]
    common: dict[str, Any] = {
        "epsilon": epsilon, "delta": DELTA, "random_state": seed, "n_jobs": 1,
        "privacy_bounds": file.numbers,
        "feature_types": ["continuous" if c in file.numbers else "nominal" for c in x.columns],
    }  # fmt: skip
    if file.labels is not None:
        model = DPExplainableBoostingClassifier(**common).fit(x, (y == file.labels[1]).astype(int))
        return file.score(held, np.asarray(model.decision_function(z)))
    assert file.schema.target is not None
    assert file.schema.target.bounds is not None
    low, high = file.schema.target.bounds
    model = DPExplainableBoostingRegressor(
        **common, privacy_target_min=low, privacy_target_max=high
    )
    return file.score(held, np.asarray(model.fit(x, y).predict(z)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", nargs="+", choices=list(FILES), default=list(FILES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--splits", type=int, default=5)
    options, rows = parser.parse_args(), []
    for name in options.set:
        file = FILES[name]()
        fits = {"default": default, "without privacy": without_privacy}
        if DPExplainableBoostingClassifier is not None and file.numbers:
            fits["DP-EBM"] = dp_ebm
        for epsilon in options.epsilon:
            row: dict[str, Any] = {"file": name, "score": file.measure, "epsilon": epsilon}
            for what in ("default", "DP-EBM", "without privacy"):
                if what in fits:
                    found = [fits[what](file, epsilon, seed) for seed in range(options.splits)]
                    row |= {what: float(np.mean(found))}
                    if what == "default":
                        row["deviation"] = float(np.std(found))
                else:
                    row[what] = "-"
            rows.append(row)
            show(f"By schema, {options.splits} splits", rows[-1:])
    show(f"By schema, {options.splits} splits", rows)
    keep("by_schema", {"rows": rows, "splits": options.splits})


if __name__ == "__main__":
    main()

"""The device's JavaScript, run in Node: the same bytes as Python's client, and the same law."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from riata import audit
from riata.local import Aggregator, Client, Task, report_format
from riata.local.randomize import choose_questions

pytestmark = pytest.mark.services

SCRIPT = Path(__file__).with_name("vectors.mjs")
VECTORS = 10_040
DEVICES = 100_000
#: Over its own randomness, each check of the law rejects sound code with this probability at most.
FAILURE = 1e-9
FAR = 6.0  # standard deviations, of which a normal number has that much in its tails

MIXED = [
    {"name": "age", "kind": "number", "bounds": [18, 90]},
    {"name": "smokes", "kind": "yes-no"},
    {"name": "town", "kind": "choice", "choices": ["a", "b", "ü"], "weight": 0.5},
    {"name": "z", "kind": "vector", "size": 3, "bounds": [-1, 1]},
    {"name": "off", "kind": "number", "bounds": [-3, 11.5], "center": 10.1, "weight": 1.7},
]
WIDE = [{"name": "z", "kind": "vector", "size": 2500, "bounds": [-1, 1]}]
CASES = {
    "linear": (1.0, MIXED, {}),
    "logistic": (4.0, MIXED, {}),
    "poisson": (2.0, MIXED, {"intercept": 0.0, "length": 0.7}),
    "lasso": (0.5, MIXED, {"intercept": 0.0, "length": 1.0, "arms": {"gram": 0.3, "cross": 0.7}}),
    "mean": (2.0, MIXED, {"title": "Straße 😀"}),
    "sparse-mean": (6.0, MIXED, {"seed": "other"}),
    "kernel": (1.0, MIXED, {"kernel": {"width": 0.7, "pairs": 9}}),
    "sparse-linear": (1.0, WIDE, {"arms": {"gram": 0.5, "cross": 0.5}}),
}
NUMBERS = [44, None, "50", " x", "1e1", "0x20", "1_0", "inf", "-Infinity", "nan", "", "+.5", "5.",
           True, [20], [], {}, "1__0", "_1", "1e", 1e300, -7, "1,5", "५", " 7\n",
           "\uff11"]  # fmt: skip
YES = [True, "no", "YES", 0, " true ", "0.5", 0.5, ["yes"], "constructor", None, "1", 7, [1], "01"]
TOWNS = ["a", "ü", "q", None, 1, ["a"], "A", "b"]


class Words:
    """Random words that are written down."""

    seeded = True

    def __init__(self, seed):
        self.rng, self.log = np.random.default_rng(seed), []

    def words(self, n):
        words = self.rng.integers(0, 2**64, n, dtype=np.uint64)
        self.log.append(words)
        return words

    def text(self):
        return np.concatenate(self.log).astype(">u8").tobytes().hex()


def node(command, given, folder):
    program = shutil.which("node")
    assert program, "tests/services/install.sh installs it"
    module = folder / "riata.mjs"  # Node takes a .js for another kind of module
    module.write_bytes((files("riata.collect") / "static" / "riata.js").read_bytes())
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    places = folder / "given.json", folder / "made"
    subprocess.run([program, SCRIPT, module, command, *places], check=True, timeout=3600)
    return places[1].read_bytes()


def made(kind, epsilon, features, more):
    table = {"kind": kind, "epsilon": epsilon, "features": features, **more}
    if "mean" not in kind:
        table["target"] = {"name": "y", "kind": "yes-no"}
        if kind != "logistic":
            low = 0 if kind == "poisson" else -2
            table["target"] = {"name": "y", "kind": "number", "bounds": [low, 3]}
    return Task.from_table(table)


def answers(rng, features, i):
    if features is WIDE:
        return {"z": np.round(rng.uniform(-0.1, 0.1, 2500), 3).tolist(), "y": float(rng.normal())}
    row = {
        "age": float(rng.uniform(10, 100)) if i % 3 else NUMBERS[i // 3 % len(NUMBERS)],
        "smokes": YES[i % len(YES)],
        "town": TOWNS[i % len(TOWNS)],
        "z": [float(rng.normal()), NUMBERS[i % len(NUMBERS)], 2.0][: i % 4],
        "off": float(rng.normal(0, 9)),
        "y": ["yes", "no", 0.3, "2", None][i % 5] if i % 2 else float(rng.normal()),
    }
    if i % 7 == 0:
        row.pop("off")
    return row


def test_node_and_python_make_the_same_bytes(tmp_path):
    rng, cases, expected = np.random.default_rng(5), [], []
    for number, (kind, (epsilon, features, more)) in enumerate(CASES.items()):
        task = made(kind, epsilon, features, more)
        n = 100 if features is WIDE else (VECTORS - 100) // (len(CASES) - 1)
        rows, reports = [], []
        for i in range(n):
            row, words, client = (
                answers(rng, features, i),
                Words(100_000 * number + i),
                Client(task),
            )
            client._noise = words
            reports.append(client.report(row).hex())
            rows.append({"row": row, "words": words.text()})
        cases.append({"task": task.canonical.decode(), "rows": rows})
        expected.append(reports)
    assert sum(map(len, expected)) == VECTORS
    found = json.loads(node("vectors", cases, tmp_path))
    different = [
        case["rows"][i]["row"]
        for case, ours, theirs in zip(cases, expected, found, strict=True)
        for i in range(len(ours))
        if ours[i] != theirs[i]
    ]
    assert different == []


def test_node_and_python_read_the_same_texts(tmp_path):
    frozen = json.loads((Path(__file__).parents[1] / "data/local_vectors.json").read_text())
    given = []
    for one in frozen["answers"]:
        table = {"kind": "mean", "epsilon": 1.0, "features": [one["feature"]], "length": 1.0}
        task = Task.from_table(table).canonical.decode()
        given.append({"task": task, "name": one["feature"]["name"], "texts": one["texts"]})
    found = json.loads(node("answers", given, tmp_path))
    for one, encoded in zip(frozen["answers"], found, strict=True):
        different = [
            text
            for text, ours, theirs in zip(one["texts"], one["encoded"], encoded, strict=True)
            if ours != theirs
        ]
        assert different == []


def surely(task, row, seeds):
    """Which of the reports a device with this row surely accepts."""
    (question,) = task.questions
    prepared = np.repeat(
        question.prepare(task.encoding.encode(row)[None], None), len(seeds), axis=0
    )
    normals = task.generator.normals(seeds, question.channel.size)
    products = (normals * question.directions(prepared, seeds)).sum(axis=1)
    return question.channel.accepts_surely(products).astype(int)


@pytest.mark.parametrize(("epsilon", "devices"), [(1.0, DEVICES), (4.0, 2 * DEVICES // 5)])
def test_reports_of_node_have_the_law_that_epsilon_allows(tmp_path, epsilon, devices):
    features = [{"name": "v", "kind": "vector", "size": 2, "bounds": [-1, 1]}]
    task = Task.from_table(
        {"kind": "mean", "epsilon": epsilon, "features": features, "length": 1.0}
    )
    pair = [{"v": [1.0, 0.0]}, {"v": [-1.0, 0.0]}]
    given = {"task": task.canonical.decode(), "rows": pair, "each": devices // 2}
    seeds = report_format.from_bytes(node("draw", given, tmp_path))
    assert len(np.unique(seeds)) == devices
    telling = surely(task, pair[0], seeds) - surely(task, pair[1], seeds)
    ours, theirs = telling[: devices // 2], telling[devices // 2 :]
    bound = audit.epsilon_lower_bound(ours, theirs, failure=FAILURE, ordered=True)
    assert 0.8 * epsilon <= bound <= epsilon


def test_the_aggregate_of_nodes_reports_is_unbiased(tmp_path):
    features = [
        {"name": "age", "kind": "number", "bounds": [0, 100]},
        {"name": "smokes", "kind": "yes-no"},
        {"name": "town", "kind": "choice", "choices": ["a", "b"]},
    ]
    target = {"name": "ill", "kind": "number", "bounds": [0, 1]}
    task = Task.from_table(
        {
            "kind": "linear",
            "epsilon": 2.0,
            "features": features,
            "target": target,
            "arms": {"gram": 0.5, "cross": 0.5},
        }
    )
    rows = [
        {"age": age, "smokes": smokes, "town": town, "ill": 0.2 + 0.006 * age}
        for age in (10, 90)
        for smokes in ("yes", "no")
        for town in ("a", "b")
    ]
    given = {"task": task.canonical.decode(), "rows": rows, "each": DEVICES // len(rows)}
    seeds = report_format.from_bytes(node("draw", given, tmp_path))
    shares = np.bincount(choose_questions(task, seeds)) / DEVICES
    assert np.abs(shares - 0.5).max() <= FAR * 0.5 / DEVICES**0.5
    vectors = np.stack([task.vectors(task.encoding.encode(row)[None])[0] for row in rows])
    targets = np.array([task.target.encode(row["ill"])[0] for row in rows])
    for question, wanted in zip(
        task.questions,
        (vectors.T @ vectors / len(rows), targets @ vectors / len(rows)),
        strict=True,
    ):
        own = seeds[choose_questions(task, seeds) == task.questions.index(question)]
        normals = task.generator.normals(own, question.channel.size)[:, :-1]
        if question.channel.degree == 2:
            # E[g g' - 1] is the signal times v v', for accepted g
            i, j = np.triu_indices(normals.shape[1], 1)
            each, wanted = normals[:, i] * normals[:, j], wanted[i, j]
        else:
            each = normals
        errors = each.std(axis=0) / len(own) ** 0.5
        assert (np.abs(each.mean(axis=0) - question.channel.signal * wanted) <= FAR * errors).all()
    model = Aggregator(task).add(seeds).solve()
    assert abs(model.coef[0] - 0.006) <= 5 * model.errors[0]

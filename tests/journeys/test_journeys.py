"""Ways through riata, by what the documentation says, and what a person sees on each.

Thresholds are far from what these fits reach: with the noise of other seeds one of them is missed
with a probability below one in a million.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tables import ADULT_SCHEMA, CLAIMS_SCHEMA, ROWS_SCHEMA, adult, claims

import riata
from riata import Bounds, Budget, Ledger, PrivateLasso
from riata.datasets import load_headlines
from riata.local import Aggregator, Client, Task


def test_from_an_adult_csv_to_a_report(person):
    """docs/cli.md: plan, ledger, fit, report."""
    adult().to_csv("adult.csv", index=False)
    person.writes("adult.toml", ADULT_SCHEMA)
    person.types("riata schema check adult.toml adult.csv").is_done()
    person.types("riata ledger create adult.db --dataset adult --epsilon 3 --delta 1e-6").is_done(
        "Started the ledger of 'adult'"
    )
    person.types(
        "riata fit --schema adult.toml --data adult.csv --epsilon 2 --ledger adult.db --out model",
        answers="y\n",
    ).is_done(
        "their number is public",
        "Plan for epsilon=2",
        "epsilon 0 is spent, and after this 2",
        "Spend this, and fit?",
        "PrivateLogisticRegression",
        "target income",
        "fit 0.",
        "class >50K",
        "odds ratio",
        "education-num",
        "differentially private",
        "Wrote model/report.html",
    )
    assert "was learned" not in person.screen
    page = Path("model/report.html").read_text()
    assert "What any one row can change is limited" in page
    assert "education-num" in page
    model = riata.load("model/model.riata")
    assert riata.evaluation.evaluate(model, adult(2000)).scores["AUC"] > 0.75


def test_from_a_public_sample_to_a_report(person):
    """docs/data.md: a draft names what nobody said, and is good enough for a first fit."""
    rows = adult().assign(person_id=lambda table: [7 * k % 9973 for k in range(len(table))])
    rows[:400].to_csv("sample.csv", index=False)
    rows[400:].to_csv("adult.csv", index=False)
    person.types("riata schema draft sample.csv --public --out first.toml").is_done(
        'such as "person_id" says whose row it is', "no target", "Wrote first.toml"
    )
    person.types("riata fit --schema first.toml --data adult.csv --epsilon 2 --out model --yes")
    person.is_refused(2, "target")
    person.types("riata schema draft sample.csv --public --target income --out adult.toml")
    person.is_done('Not used: "person_id", because it has the name and the numbers of an id')
    person.types("riata schema check adult.toml adult.csv").is_done("No row was read")
    person.types(
        "riata fit --schema adult.toml --data adult.csv --epsilon 2 --out model --yes"
    ).is_done("target income", "fit 0.", "Wrote model/report.html")
    assert "linear function changes with a number" in Path("model/report.html").read_text()


def test_headlines(person):
    """docs/tutorials/text.md with a file: the words of a text predict a class."""
    texts, clickbait = load_headlines()
    rows = pd.DataFrame({"headline": texts, "clickbait": np.where(clickbait, "yes", "no")})
    rows.to_csv("headlines.csv", index=False)
    person.writes(
        "headlines.toml",
        'features = [{name = "headline", kind = "text", buckets = 4096}]\n'
        'target = {name = "clickbait", classes = ["no", "yes"]}\n',
    )
    person.types("riata split headlines.csv --train train.csv --held-out held.csv").is_done("Wrote")
    person.types(
        "riata fit --schema headlines.toml --data train.csv --epsilon 3 --out model --yes"
    ).is_done("No ledger records this fit", "columns are not 0", "headline[", "Wrote")
    person.types("riata evaluate model/model.riata --data held.csv --public --json").is_done()
    assert json.loads(person.printed)["scores"]["accuracy"] > 0.7


def test_claims_of_people(person):
    """docs/data.md: several rows for a person, and a guarantee for people."""
    claims().to_csv("claims.csv", index=False)
    person.writes("claims.toml", CLAIMS_SCHEMA)
    person.types(
        "riata ledger create claims.db --dataset claims --epsilon 2 --delta 1e-6 "
        "--adjacency replace-person --person member"
    ).is_done()
    person.types(
        "riata fit --schema claims.toml --data claims.csv --epsilon 2 --ledger claims.db "
        "--out model --yes"
    ).is_done(
        "Counting the people",
        "of 3,000 people",
        "differ by the replacement of one person",
        "Wrote",
    )
    person.types("riata ledger show claims.db").is_done("claims")
    assert "one person" in Path("model/report.html").read_text()


def test_a_study_with_a_mistake_at_each_step(person):
    """Every step goes wrong once, nothing is charged for it, and each message says what to do."""
    claims(2000).to_csv("claims.csv", index=False)
    study = (
        'schema = "claims.toml"\ndata = "claims.csv"\nout = "model"\n[budget]\nepsilon = 1\n'
        'delta = 1e-7\n[ledger]\npath = "claims.db"\n'
    )
    person.writes("study.toml", study.replace("epsilon", "epsilom"))
    person.writes("claims.toml", ROWS_SCHEMA.replace('"age"', '"agee"'))
    person.types("riata fitt study.toml").is_refused(2, "Did you mean 'fit'")
    person.types("riata fit study.toml --yes").is_refused(2, "no epsilon")
    person.writes("study.toml", study)
    person.types("riata fit study.toml --yes").is_refused(5, "riata ledger create")
    person.types(
        "riata ledger create claims.db --dataset claims --epsilon 1 --delta 1e-6"
    ).is_done()
    person.types("riata fit study.toml --yes").is_refused(4, "no column 'agee'")
    person.writes("claims.toml", ROWS_SCHEMA.replace("[0, 110]", "[110, 0]"))
    person.types("riata fit study.toml --yes").is_refused(4, "In 'age'", "below the second")
    person.writes("claims.toml", ROWS_SCHEMA)
    person.types("riata fit study.toml").is_refused(2, "no terminal to ask", "--yes")
    person.types("riata fit study.toml --epsilon 3 --yes").is_refused(3, "more than the ceiling")
    person.types("riata fit study.toml --solver greddy --yes").is_refused(2, "'greedy'")
    person.types("riata fit study.toml", answers="no\n").is_done("Nothing was charged")
    assert Ledger.open("claims.db").charges == []
    person.types("riata fit study.toml --yes").is_done("age", "Wrote")
    assert len(Ledger.open("claims.db").charges) == 1


def test_a_pipeline():
    """docs/start.md in scikit-learn: a public transformation, and a private model behind it."""
    rows = claims(3000)
    x = np.column_stack([rows["age"], rows["smoker"] == "yes"]).astype(float)
    scale = FunctionTransformer(lambda x: x / [110.0, 1.0])
    ledger = Ledger.create(":memory:", dataset="claims", ceiling=Budget(2.0, 1e-6))
    lasso = PrivateLasso(2.0, 1e-6, bounds=Bounds(x=1.0, y=10_000.0), ledger=ledger)
    model = make_pipeline(scale, lasso).fit(x, rows["cost"])
    said = str(model[-1].summary())
    assert "(2, 1e-06)-differentially private" in said
    assert "x[0]" in said
    assert model.score(x, rows["cost"]) > 0.5  # these rows are made up
    assert len(ledger.charges) == 1


def test_a_directory_of_parquet_files(person):
    """docs/scale.md: files of one schema, read in order."""
    Path("claims").mkdir()
    for k in range(3):
        claims(1000, seed=k).to_parquet(f"claims/part-{k}.parquet")
    person.writes("claims.toml", ROWS_SCHEMA)
    person.types(
        "riata fit --schema claims.toml --data claims --epsilon 2 --out model --yes"
    ).is_done("smoker", "Wrote")
    assert "age" in person.screen
    person.types("riata predict model/model.riata --data claims --keep member").is_done()
    lines = person.printed.splitlines()
    assert lines[0] == "member,prediction"
    assert len(lines) == 1 + sum(len(claims(1000, seed=k)) for k in range(3))


def test_a_hold_out_evaluation(person):
    """docs/results.md: split by member, fit, and evaluate twice."""
    claims().to_csv("claims.csv", index=False)
    person.writes("claims.toml", ROWS_SCHEMA)
    person.types(
        "riata split claims.csv --key member --train train.csv --held-out held.csv"
    ).is_done("take that for public only if these ids are", "Wrote")
    assert not set(pd.read_csv("train.csv")["member"]) & set(pd.read_csv("held.csv")["member"])
    person.types(
        "riata fit --schema claims.toml --data train.csv --epsilon 2 --out model --yes"
    ).is_done()
    evaluate = "riata evaluate model/model.riata --data held.csv"
    person.types(evaluate).is_refused(2, "--public", "--epsilon")
    person.types(f"{evaluate} --public --out evaluation.html").is_done(
        "These scores are exact", "R2", "mean absolute error", "Wrote evaluation.html"
    )
    assert "target minus prediction" in Path("evaluation.html").read_text()
    person.types("riata ledger create held.db --dataset held --epsilon 1 --delta 1e-6").is_done()
    person.types(f"{evaluate} --epsilon 0.5 --ledger held.db", answers="y\n").is_done(
        "with noise of standard deviation",
        "epsilon 0 is spent, and after this 0.5",
        "Spend this, and score?",
        "mean absolute error",
        "differentially private",
    )
    assert len(Ledger.open("held.db").charges) == 1


def test_two_fits_on_one_ledger(person):
    """docs/privacy/ledger.md: the second fit sees what is left, and the third is refused."""
    claims(2000).to_csv("claims.csv", index=False)
    person.writes("claims.toml", ROWS_SCHEMA)
    person.types("riata ledger create c.db --dataset claims --epsilon 1 --delta 1e-6").is_done()
    fit = "riata fit --schema claims.toml --data claims.csv --ledger c.db --delta 1e-7 --yes"
    person.types(f"{fit} --epsilon 0.5 --out first").is_done("after this 0.444")
    person.types(f"{fit} --epsilon 0.5 --out second").is_done("The same fit was charged before")
    person.types(f"{fit} --epsilon 0.9 --out third").is_refused(3, "more than the ceiling")
    assert not Path("third").exists()
    person.types("riata ledger verify c.db").is_done()
    person.types("riata ledger show c.db --json").is_done()
    assert len(json.loads(person.printed)["charges"]) == 2


def test_a_model_file_on_another_machine(person):
    """A process of its own, in a folder with the model and new rows, and nothing else."""
    claims(2000).to_csv("claims.csv", index=False)
    person.writes("claims.toml", ROWS_SCHEMA)
    person.types(
        "riata fit --schema claims.toml --data claims.csv --epsilon 2 --out model --yes"
    ).is_done()
    elsewhere = person.folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy("model/model.riata", elsewhere)
    claims(50, seed=9).drop(columns="cost").to_csv(elsewhere / "new.csv", index=False)

    def there(*arguments):
        path = str(Path(riata.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-m", "riata", *arguments], cwd=elsewhere, capture_output=True,
            text=True, env=os.environ | {"PYTHONPATH": path}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "95% interval" in there("summary", "model.riata") or "estimate" in there(
        "summary", "model.riata"
    )
    lines = there("predict", "model.riata", "--data", "new.csv", "--keep", "member").splitlines()
    assert lines[0] == "member,prediction"
    model = riata.load("model/model.riata")
    expected = model.predict(claims(50, seed=9))
    np.testing.assert_allclose([float(line.split(",")[1]) for line in lines[1:]], expected)


def test_a_local_survey(person):
    """docs/local.md: a task file, a report from each device, and means with their errors."""
    person.writes(
        "survey.toml",
        'kind = "mean"\ntitle = "Sleep"\nepsilon = 2.0\n'
        'features = [{name = "hours", kind = "number", bounds = [0, 12], center = 7}]\n',
    )
    person.types("riata collect plan survey.toml 3000").is_done("3,000")
    task = Task.load("survey.toml")
    hours = np.random.default_rng(0).normal(6, 1, 3000)
    aggregator = Aggregator(task)
    aggregator.add([Client(task).report({"hours": float(one)}) for one in hours])
    model = aggregator.solve()
    riata.save(model, "survey.riata")
    person.types("riata summary survey.riata").is_done("2-differentially private", "hours")
    (line,) = (one for one in person.printed.splitlines() if one.startswith("hours"))
    assert abs(float(line.split()[1]) - hours.mean()) < 1.0
    person.types("riata report survey.riata").is_done("Wrote report.html")
    assert "Every report protects the person who sent it" in Path("report.html").read_text()

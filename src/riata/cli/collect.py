"""`riata collect`: make a task, serve it, watch it, and learn from what came."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.prompt import Confirm, FloatPrompt, Prompt
from rich.table import Table

from riata.cli.console import AsJson, Force, answer_json, answer_table, check_unused, reply
from riata.cli.options import MaxBytes
from riata.errors import CollectError, RiataError
from riata.files.limit import MAX_BYTES
from riata.wording import number_of

if TYPE_CHECKING:  # SciPy is slow to import
    from riata.collect.merging import MergedReports
    from riata.local import Aggregator, Task

app = typer.Typer(help="Collect reports from people who trust nobody.", no_args_is_help=True)

TaskFile = Annotated[Path, typer.Argument(help="The task file (TOML or JSON).")]
Stores = Annotated[
    list[str] | None,
    typer.Option("--store", help="A directory or a database's address; several are merged."),
]


@app.command()
def init(
    path: TaskFile,
    people: Annotated[int | None, typer.Option(help="How many people will answer.", min=1)] = None,
    force: Force = False,
) -> None:
    """Ask about a survey and write its task file, with comments."""
    if path.suffix != ".toml":
        raise CollectError(f"{path} would be TOML. Give it a name that ends in .toml.")
    check_unused(path, force)
    from riata.local import Task

    text = _wizard()
    task = Task.read(text, toml=True)
    path.write_text(text, encoding="utf-8")
    typer.echo(f"\nWrote {path}. The id of this task is {task.id[:12]}….")
    if people is not None:
        typer.echo(str(task.plan(people)))
    typer.echo(f"Read it, correct it, then: riata collect serve {path}")


@app.command()
def plan(path: TaskFile, people: int, as_json: AsJson = False) -> None:
    """Say what can be learned from so many people, before anything is collected."""
    found = _task(path).plan(people)
    facts = {"share": found.share, "interval": found.interval, "silent": found.no_signal,
             "needed": found.people_needed, "advice": found.advice}  # fmt: skip
    reply(as_json, facts, str(found))


@app.command()
def serve(
    path: TaskFile,
    store: Annotated[
        str, typer.Option(help="A directory, or the address of a database for many collectors.")
    ] = "reports",
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.", min=1, max=65535)] = 8080,
    people: Annotated[int, typer.Option(help="How many people are expected.", min=0)] = 0,
    tokens: Annotated[
        Path | None, typer.Option(help="The file with the key of one-time tokens.")
    ] = None,
    connections_per_address: Annotated[
        int | None, typer.Option(help=r"Connections at once; 0: any number. \[default: 100]", min=0)
    ] = None,
    reports_per_address: Annotated[
        int | None,
        typer.Option(
            help=r"Reports in an hour; 0: any number. \[default: 10000 without --tokens, else 0]",
            min=0,
        ),
    ] = None,
    most_reports: Annotated[
        int | None,
        typer.Option(
            help=r"Reports in all; 0: any number. \[default without --tokens: ten times --people, "
            "or 1000000; else 0]",
            min=0,
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help="A reverse proxy's address or network: its X-Forwarded-For is believed."),
    ] = None,
) -> None:
    """Serve the survey's page and accept reports."""
    from riata.collect import server
    from riata.collect.address_limits import Limits, Proxies
    from riata.collect.stores import display_address

    task = _open_task(path)
    limits = Limits.with_defaults(
        tokens=tokens is not None,
        people=people,
        connections=connections_per_address,
        reports_per_hour=reports_per_address,
        most_reports=most_reports,
    )
    proxies = Proxies(trusted_proxy or ())
    typer.echo(f"{task!r}\nSurvey:    http://{host}:{port}/\nReports:   {display_address(store)}")
    typer.echo(f"Limits:    {limits}")
    if not proxies:
        typer.echo(
            "           Behind a reverse proxy, name it with --trusted-proxy: else everybody"
        )
        typer.echo("           has its address.")
    server.serve(
        task, store, host, port, people=people, tokens=tokens, limits=limits, proxies=proxies
    )


@app.command()
def invite(
    path: TaskFile,
    number: Annotated[int, typer.Argument(help="How many tokens.", min=1)],
    tokens: Annotated[Path, typer.Option(help="The file with the key; made if need be.")],
    url: Annotated[str, typer.Option(help="The survey's address.")] = "http://127.0.0.1:8080/",
) -> None:
    """Print links with one-time tokens. Do not write down who gets which."""
    from riata.collect.tokens import Tokens

    for token in Tokens.at(tokens, _task(path).id).make(number):
        typer.echo(f"{url}#{token}")


@app.command()
def status(path: TaskFile, store: Stores = None, as_json: AsJson = False) -> None:
    """Count what has come so far."""
    aggregator, merged = _aggregate(_task(path), store or ["reports"], silent=as_json)
    checks = {name: check.share for name, check in aggregator.honesty().items()}
    facts = {
        "task": aggregator.task.id, "reports": aggregator.count, "honest": checks,
        "doubled_tokens": merged.doubled, "left_out": sum(merged.left_out),
    }  # fmt: skip
    if as_json:
        answer_json(facts)
        return
    table = Table("task", "reports", *(f"honest, {name}" for name in checks))
    shares = (f"{share:.2f}" for share in checks.values())
    table.add_row(aggregator.task.id[:12], f"{aggregator.count:,}", *shares)
    answer_table(table)


@app.command()
def export(path: TaskFile, out: Path, store: Stores = None) -> None:
    """Write the sums of all reports to a file that other shards can be merged with."""
    aggregator, _ = _aggregate(_task(path), store or ["reports"])
    aggregator.save(out)
    typer.echo(f"Wrote the sums of {number_of(aggregator.count, 'report')} to {out}.")


@app.command()
def learn(
    path: TaskFile,
    store: Stores = None,
    shard: Annotated[list[Path] | None, typer.Option(help="A file that `export` wrote.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for model, Statement and report; the store if that is one."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about it, as HTML.")] = None,
    max_bytes: MaxBytes = MAX_BYTES,
) -> None:
    """Fit the model, print it with its guarantee, and write both to files."""
    from riata.collect.artifacts import write_artifacts
    from riata.local import Aggregator
    from riata.local.collection_result import CollectionResult
    from riata.report import page

    stores = store or ([] if shard else ["reports"])
    aggregator, _ = _aggregate(_task(path), stores)
    for one in shard or []:
        aggregator.merge(Aggregator.load(one, max_bytes=max_bytes))
    result = CollectionResult.from_aggregator(aggregator)
    typer.echo(f"{result.model}\n{result.statement.sentence}")
    if out is None:
        out = next((Path(one) for one in stores if "://" not in one), None)
    if out is not None:
        for written in write_artifacts(result, out):
            typer.echo(f"Wrote {written}.")
        if report is None and not page.missing():
            report = out / "report.html"
    if report is not None:
        page.write(result.model, report)
        typer.echo(f"Wrote {report}.")


def _open_task(path: Path) -> Task:
    task = _task(path)
    if not task.open_on(datetime.datetime.now(datetime.UTC).date()):
        raise CollectError(
            f"The deadline of the task was {task.deadline}, and all reports would be refused. "
            "Learn from what came, or begin another task."
        )
    return task


def _task(path: Path) -> Task:
    from riata.local import Task

    return Task.load(path)


def _aggregate(
    task: Task, stores: list[str], silent: bool = False
) -> tuple[Aggregator, MergedReports]:
    """The sums of all reports in some stores: each report once, and one for each token."""
    from riata.collect.stores import display_address, merge_stores
    from riata.local import Aggregator

    merged = merge_stores(stores, task)
    warning = merged.warning([display_address(one) for one in stores])
    if warning and not silent:
        typer.echo(warning)
    aggregator = Aggregator(task, expected=10_000_000)
    aggregator.add(merged.reports)
    aggregator.tokens = merged.tokens
    return aggregator, merged


def _wizard() -> str:
    """The text of a task file, from answers on the terminal."""
    from riata.local.channel import LARGEST_EPSILON
    from riata.local.kinds import KINDS

    title = Prompt.ask("What is the survey called?")
    kinds = {"averages": "mean", "predict a number": "linear", "predict yes or no": "logistic"}
    wanted = Prompt.ask("What do you want to learn?", choices=list(kinds), default="averages")
    epsilon = 0.0
    while not 0 < epsilon <= LARGEST_EPSILON:
        epsilon = FloatPrompt.ask("Epsilon of one report (1 is strong, 4 is weak)", default=1.0)
    names: set[str] = set()
    features: list[str] = []
    while not features or Confirm.ask("Another question?", default=True):
        features.append(_asked("features", "A question for people to answer", names))
    target = ""
    if wanted != "averages":
        yes_no = kinds[wanted] == "logistic"
        target = _asked("target", "What is to be predicted", names, yes_no=yes_no)
    return _TEMPLATE.format(
        title=_quoted(title),
        kind=kinds[wanted],
        kinds=", ".join(KINDS),
        epsilon=epsilon,
        features="\n".join(features),
        target=target,
    )


def _asked(table: str, what: str, names: set[str], yes_no: bool = False) -> str:
    """The lines of one question. What a task would refuse is asked again."""
    from riata.local.encoding import Feature
    from riata.local.task_fields import TaskFields

    while True:
        lines = _lines(what, yes_no, choices=table == "features")
        try:
            feature = Feature.read(TaskFields(tomllib.loads("\n".join(lines))))
        except RiataError as problem:
            typer.echo(f"  {problem}")
            continue
        if feature.name not in names:
            names.add(feature.name)
            head = f"[[{table}]]" if table == "features" else f"[{table}]"
            return "\n".join([head, *lines]) + "\n"
        typer.echo(f"  Another question is called {feature.name} already.")


def _lines(what: str, yes_no: bool, choices: bool) -> list[str]:
    question = Prompt.ask(what)
    short = "".join(one for one in question.lower() if one.isalnum())[:12]
    name = Prompt.ask("  A short name for it", default=short or "answer")
    kind = "yes-no"
    if not yes_no:
        known = ["number", "yes-no", *(["choice"] if choices else [])]
        kind = Prompt.ask("  Its answers", choices=known, default="number")
    lines = [f"name = {_quoted(name)}", f"question = {_quoted(question)}", f'kind = "{kind}"']
    if kind == "number":
        low = FloatPrompt.ask("  The smallest possible answer")
        high = FloatPrompt.ask("  The largest possible answer")
        lines.append(f"bounds = [{low}, {high}]   # answers outside are clipped on the device")
    if kind == "choice":
        names = [one.strip() for one in Prompt.ask("  The choices, with commas").split(",")]
        lines.append(f"choices = [{', '.join(_quoted(one) for one in names if one)}]")
    return lines


def _quoted(text: str) -> str:
    """A TOML string: as JSON has it, but with all of Unicode as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_TEMPLATE = """\
# A riata task: everything that devices and servers agree on. Nothing in it may depend on data, and
# nothing may change once the first report has come: the SHA-256 of the file's content is the task.
title = {title}
kind = "{kind}"         # {kinds}
epsilon = {epsilon}           # what one report costs the person who sends it
cap = 1                 # how many reports one person may send
# deadline = 2027-01-31 # the last day (UTC)

{features}
{target}"""

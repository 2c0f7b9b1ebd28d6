"""Every reader of files from strangers, and a process that reads with a hard limit of memory.

Run as a program it is a server: it forks for each request, so that each file is read in a fresh
process, which can have `max_bytes` and a constant more memory than before it began, and some
seconds of processor time. What it needs beyond that kills it, and fails the test.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

#: Address space that a process may need beyond what a reader promises: pages of the allocator, a
#: zip file's own buffers, an import.
CONSTANT = 48 * 2**20
#: Processor time for one file of at most a few megabytes, which takes about a hundredth of this.
SECONDS = 60


def _load_model(path, max_bytes):
    import riata

    return riata.load(path, max_bytes=max_bytes)


def _load_schema(path, max_bytes):
    from riata import Schema

    return Schema.load(path, max_bytes=max_bytes)


def _read_schema(path, max_bytes):
    from riata import Schema

    return Schema.read(Path(path).read_bytes(), max_bytes=max_bytes)


def _schema_from_table(path, max_bytes):
    from riata import Schema

    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError):
        table = None
    return None if table is None else Schema.from_table(table, max_bytes=max_bytes)


def _load_task(path, max_bytes):
    from riata.local import Task

    return Task.load(path, max_bytes=max_bytes)


def _read_task(path, max_bytes):
    from riata.local import Task

    return Task.read(Path(path).read_bytes(), max_bytes=max_bytes)


def _task_from_table(path, max_bytes):
    from riata.local import Task

    try:
        table = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError):
        table = None
    return None if table is None else Task.from_table(table, max_bytes=max_bytes)


def _load_aggregator(path, max_bytes):
    from riata.local import Aggregator

    return Aggregator.load(path, max_bytes=max_bytes)


#: By the name of the public function: what reads a file, the only error that it raises, and the
#: form of the file.
READERS = {
    "riata.load": (_load_model, "ModelFileError", "model"),
    "riata.data.Schema.load": (_load_schema, "SchemaError", "schema"),
    "riata.data.Schema.read": (_read_schema, "SchemaError", "schema"),
    "riata.data.Schema.from_table": (_schema_from_table, "SchemaError", "schema"),
    "riata.local.Task.load": (_load_task, "TaskError", "task"),
    "riata.local.Task.read": (_read_task, "TaskError", "task"),
    "riata.local.Task.from_table": (_task_from_table, "TaskError", "task"),
    "riata.local.Aggregator.load": (_load_aggregator, "InvalidArgument", "shard"),
}


@dataclass
class Answer:
    """How the reading of one file ended.

    Attributes
    ----------
    error : str
        The class of the error, "" if the file was read, or how the process died.
    message : str
    """

    error: str
    message: str


class LimitedReader:
    """A server of this file, as a context manager."""

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(timeout=3600)
        self._process.stdout.close()

    def read(self, reader, path, max_bytes):
        """The answer of a reader about a file."""
        request = {"reader": reader, "path": str(path), "max_bytes": max_bytes}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the server died"
        return Answer(**json.loads(line))


def _ran_out(problem):
    """Whether an error, or one that it hides, is that there was no memory left."""
    while problem is not None:
        if isinstance(problem, MemoryError):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _one(request):
    """The answer to one request, in a process that may use only so much from here on."""
    reader = READERS[request["reader"]][0]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + request["max_bytes"] + CONSTANT
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        reader(request["path"], request["max_bytes"])
    except BaseException as problem:
        name = "MemoryError" if _ran_out(problem) else type(problem).__name__
        return {"error": name, "message": str(problem)[-300:]}
    return {"error": "", "message": ""}


def _forked(request):
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(to_parent, json.dumps(_one(request)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(to_parent)
    with open(from_child, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return said.decode()
    died = os.waitstatus_to_exitcode(status)
    name = signal.Signals(-died).name if died < 0 else f"status {died}"
    return json.dumps({"error": f"died: {name}", "message": ""})


def main():
    import riata.local
    import riata.model_file

    warm = riata.local.Task.from_table(
        {"kind": "mean", "epsilon": 1.0, "features": [{"name": "a", "kind": "yes-no"}]}
    )
    assert warm.id
    for line in sys.stdin:
        print(_forked(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()

"""Threads and processes that are let go at once."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading


def in_threads(work, each):
    """Call `work` with each of some values, all at once in threads of their own."""
    start = threading.Barrier(len(each))

    def run(value):
        start.wait()
        work(value)

    threads = [threading.Thread(target=run, args=(value,)) for value in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_processes(number, prepare, work, *arguments):
    """What so many processes print as JSON: all have prepared before the first begins to work."""
    wait = '\nprint("ready", flush=True)\nsys.stdin.readline()\n'
    code = "import json, sys\n" + textwrap.dedent(prepare) + wait + textwrap.dedent(work)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(number)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    found = [json.loads(racer.communicate()[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * number
    return found

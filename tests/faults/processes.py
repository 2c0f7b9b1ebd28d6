"""Processes that charge a ledger and are killed, raced, starved or locked out.

Run as a script: fork wants a process without threads, and one import serves a thousand children.
Each command prints one JSON object.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

from riata import Bounds, Budget, BudgetExceeded, Ledger, PrivateLasso
from riata.errors import LedgerError
from riata.files import durable
from riata.privacy.events import Pure

GRANTED, EXCEEDED, REFUSED = 10, 11, 12
NOBODY = 65534
#: In times of a charge, as it was measured last, so that most kills hit one of the first.
LONGEST_LIFE = 2
KILLS_A_LEDGER = 20


def create(folder, database, name, ceiling):
    where = database or f"{folder}/{name}.db"
    return Ledger.create(where, dataset=name, ceiling=ceiling, head=f"{folder}/{name}.head")


def charge(ledger, epsilon=0.001):
    return ledger.charge(Pure(epsilon), adjacency="replace-one", summary={})


def fork(work):
    """The process id of a child that does `work` and exits with the code it returns."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(ledger, epsilon=0.001):
    try:
        charge(ledger, epsilon)
    except BudgetExceeded:
        return EXCEEDED
    except LedgerError:
        return REFUSED
    return GRANTED


def kill(folder, kills, seed, order, database=None):
    """Kill -9 at random moments. A child releases after it charged, or, if broken, before."""
    rng = random.Random(int(seed))
    lost = ahead = released = charged = 0
    for number in range(int(kills)):
        if number % KILLS_A_LEDGER == 0:
            ledger = create(folder, database, f"d{seed}-{number}", Budget(100.0, 0.0))
        start = time.perf_counter()
        charge(ledger)
        pace = time.perf_counter() - start
        read, write = os.pipe()

        def work(ledger=ledger, write=write):
            while True:
                if order == "broken":
                    os.write(write, b".")
                    charge(ledger)
                else:
                    charge(ledger)
                    os.write(write, b".")

        before = len(ledger.charges)
        child = fork(work)
        os.close(write)
        time.sleep(rng.uniform(0, LONGEST_LIFE * pace))
        os.kill(child, signal.SIGKILL)
        assert wait(child) == -signal.SIGKILL
        with open(read, "rb") as pipe:
            releases = len(pipe.read())
        seen = ledger._head.read().seq
        verified = ledger.verify()
        ahead += verified.charges > seen
        lost += verified.charges - before < releases
        released += releases
        charged += verified.charges - before
    return {"lost": lost, "ahead": ahead, "released": released, "charged": charged}


#: A charge calls these while it writes; a process dies on the first or the second call.
POINTS = {
    "while the head is written": (durable, "write_new"),
    "before the head is replaced": (os, "replace"),
    "after the head is replaced": (durable, "sync_directory"),
    "on a sync": (os, "fsync"),
}


def crash(folder):
    """Kill -9 at chosen points: nothing was released yet, and the ledger must go on."""
    ledger = create(folder, None, "points", Budget(100.0, 0.0))
    found = {}
    for point, (module, name) in POINTS.items():
        for call in (1, 2, 3):

            def work(module=module, name=name, call=call):
                real, calls = getattr(module, name), []

                def deadly(*args, **kwargs):
                    calls.append(1)
                    if len(calls) == call:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*args, **kwargs)

                setattr(module, name, deadly)
                charge(ledger)
                return GRANTED

            before = ledger.verify().charges
            code = wait(fork(work))
            seen = ledger._head.read().seq
            after = ledger.verify().charges
            assert charge(ledger) == after + 1
            assert ledger._head.read().seq == after + 1
            found[f"{point}, call {call}"] = [code, after - before, after - seen]
    return found


def race(folder, racers, rounds, database=None):
    """All children are let go at once for a budget that is enough for one of them."""
    wins = []
    for number in range(int(rounds)):
        ledger = create(folder, database, f"race{number}", Budget(1.0, 0.0))
        charge(ledger, 0.5)
        read, write = os.pipe()

        def work(ledger=ledger, read=read, write=write):
            os.close(write)
            os.read(read, 1)  # until the parent closes its end
            return outcome(ledger, 0.5)

        children = [fork(work) for _ in range(int(racers))]
        os.close(read)
        os.close(write)
        codes = [wait(child) for child in children]
        assert set(codes) <= {GRANTED, EXCEEDED}, codes
        wins.append(codes.count(GRANTED))
        assert ledger.verify().charges == 1 + wins[-1]
        assert ledger.spent.epsilon == 1.0
    return {"wins": wins}


def full(folder, *limits):
    """A disk on which no file may grow beyond a limit."""
    ledger = create(folder, None, "full", Budget(100.0, 0.0))
    charge(ledger)
    found = {}
    for limit in map(int, limits):

        def work(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return outcome(ledger)

        before = ledger.verify().charges
        code = wait(fork(work))
        found[limit] = [code, ledger.verify().charges - before]
        charge(ledger)
    return found


def locked(folder):
    """Files and folders that the process must not write to or read."""
    found = {}
    for case in ("open", "file", "folder", "head", "head folder"):
        ledgers, heads = Path(folder, case, "ledgers"), Path(folder, case, "heads")
        ledgers.mkdir(parents=True)
        heads.mkdir()
        path, head = ledgers / "study.db", heads / "study.head"
        ledger = Ledger.create(path, dataset="d", ceiling=Budget(1.0, 0.0), head=head)
        charge(ledger)
        for item in (path, head):
            item.chmod(0o666)
        for item in (ledgers, heads):
            item.chmod(0o777)
        shut = {"file": path, "folder": ledgers, "head": head, "head folder": heads}.get(case)
        if shut is not None:
            shut.chmod(0o000 if case == "head" else 0o555 if shut.is_dir() else 0o444)

        def work(ledger=ledger):
            if os.getuid() == 0:  # whom no permission binds
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            return outcome(ledger)

        code = wait(fork(work))
        if shut is not None:
            shut.chmod(0o777 if shut.is_dir() else 0o666)
        found[case] = [code, len(ledger.charges) - 1]
    return found


def fits(folder, children):
    """Each child fits once with a ledger that it inherited."""
    ledger = create(folder, None, "fits", Budget(5.0, 1e-6))
    model = PrivateLasso(0.1, 1e-6, bounds=Bounds(1.0, 1.0), steps=2, ledger=ledger)

    def work():
        model.fit(np.ones((20, 2)), np.ones(20))
        return GRANTED

    codes = [wait(child) for child in [fork(work) for _ in range(int(children))]]
    return {"codes": codes, "path": ledger.path, "head": ledger._head.path}


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    print(json.dumps(globals()[command](*arguments)))

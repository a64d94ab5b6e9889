# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What test scripts share: cases, running a program bare or under the agent, and reading what was recorded.

A script decorates its cases with @case and ends with main(); test/run then runs each case by its name.
"""

import atexit
import collections
import contextlib
import fcntl
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback


def preloadable(folder):
    """The folder by a name that LD_PRELOAD can hold: blanks and colons end one there."""
    if not set(str(folder)) & set(" :"):
        return folder
    link = pathlib.Path(tempfile.mkdtemp(prefix="torsh-test-", dir="/tmp")) / "link"
    link.symlink_to(folder)
    atexit.register(shutil.rmtree, link.parent)
    return link


ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
AGENT = preloadable(BUILD) / "libtorshagent.so"
TORSH = BUILD / "torsh"
PROGRAMS = BUILD / "test/programs"
IS_CI = os.environ.get("CI") == "true"
IS_QUICK = bool(os.environ.get("TEST_QUICK"))
TIMEOUT_S = 300  # of a program of a test; four tests run on two busy cores

_cases = {}
_needs, _needs_of_all = {}, []


class Skip(Exception):
    """Raised by a case that can't run here; its text is the reason."""


def case(function):
    add_case(function.__name__, function)
    return function


def add_case(name, function, *arguments):
    """The same function as a case for each row of a table."""
    _cases[name] = lambda: function(*arguments)
    _needs[name] = [*getattr(function, "needs", []), *getattr(function, "marks", [])]


def add_long_case(name, function, *arguments):
    """One that make test leaves out (see `long`)."""
    add_case(name, function, *arguments)
    _needs[name].append("long")


def needs(*environments):
    """Below @case: the function needs these environments, by their names in test/python/environment."""
    def mark(function):
        function.needs = list(environments)
        return function
    return mark


def marked(function, mark):
    function.marks = [*getattr(function, "marks", []), mark]
    return function


def waits(function):
    """Below @case: it waits for clocks and other processes more than it computes, and measures nothing itself."""
    return marked(function, "waits")


def quiet(function):
    """Below @case: its truth is times, so the others of this run are not beside it."""
    return marked(function, "quiet")


def long(function):
    """Below @case: another form of what a shorter case shows, which takes its time: make test LONG=1 and T=its name run it."""
    return marked(function, "long")


def all_wait():
    """So does every case of the script."""
    _needs_of_all.append("waits")


def all_are_quiet():
    """So is every case of the script."""
    _needs_of_all.append("quiet")


def all_need(environment):
    """Every case of the script needs it."""
    _needs_of_all.append(environment)


def run_cases(names):
    for name in names:
        try:
            _cases[name]()
        except Skip as reason:
            print(reason)
            return 77
        except AssertionError as error:
            # Where in the script, and what: frames of the harness are left out.
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
            print(f"{name}: {error or 'asserted ' + frames[-1].line}")
            print("".join(f"  at {frame.filename}:{frame.lineno}: {frame.line}\n" for frame in frames[-2:]), end="")
            return 1
        except subprocess.TimeoutExpired as error:
            print(f"{name}: {' '.join(error.cmd)} did not end within {error.timeout} s\n{error.stderr}")
            return 1
    return 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--list"]:
        for name in _cases:
            print(name, *_needs_of_all, *_needs[name])
        return
    sys.exit(run_cases(arguments or _cases))


def scratch(name="out"):
    """A fresh, empty folder of this case's own."""
    base = pathlib.Path(os.environ.get("TEST_TMP") or BUILD / "test/tmp" / f"by-hand-{os.getpid()}")
    folder = base / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def shared(name):
    """A folder in which the cases of one run keep things for each other; by hand each has its own."""
    base = os.environ.get("TEST_SHARED") or os.environ.get("TEST_TMP") or BUILD / "test/tmp" / f"by-hand-{os.getpid()}"
    folder = pathlib.Path(base) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def once(name, make):
    """
    The result of make(folder), a value of JSON, made by the first case of a run that needs it, in a
    fresh folder that stays: the others wait, and read the result. For a recording that several
    cases read.
    """
    folder = shared(name)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "made.json"
        if not made.exists():
            whole, fresh = folder / "being-made", folder / f"made-{time.monotonic_ns()}"
            fresh.mkdir()  # whoever fails leaves something behind
            whole.write_text(json.dumps(make(fresh)))
            whole.rename(made)
        return json.loads(made.read_text())


def in_time(items, seconds, least, what):
    """
    Items for so long, but at least so many where there are as many: the time that a test has can't hide that it did
    nothing. How many there were is the test's last line, which test/run shows.
    """
    deadline, n = time.monotonic() + seconds, 0
    for item in items:
        yield item
        n += 1
        if n >= least and time.monotonic() > deadline:
            break
    assert n, f"there were no {what}"
    print(f"note: {n} {what}")


def missing(reason):
    """Skips the case; where everything has to be there, fails it."""
    if IS_CI:
        raise AssertionError(reason)
    raise Skip(reason)


def need_command(name):
    """Its path. What .ci/deps installs, or every Debian has, is missing in CI by mistake only."""
    return shutil.which(name) or missing(f"{name} is not on this machine")


def need_library(name):
    """The path of a shared library of the distribution's."""
    found = sorted(path for folder in ("/usr/lib", "/lib") for path in pathlib.Path(folder).glob(f"*/{name}"))
    return found[0] if found else missing(f"{name} is not on this machine")


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def wait_until(condition, what, seconds=120):
    """The condition's first true value; fails after the deadline. The only way in which tests wait."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"waited {seconds} s for: {what}")


def clean_environment():
    """The caller's, without anything that speaks to an agent, an allocator or a terminal."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORSH_", "LD_", "MALLOC_", "PYTHON"))}
    return dict(kept, LC_ALL="C.UTF-8", TZ="UTC")


def agent_environment(output, **variables):
    env = clean_environment()
    env.update(LD_PRELOAD=str(AGENT), TORSH_PROFILER_OUTPUT=str(output), TORSH_PROFILER_SUMMARY="0")
    env.update({name: str(value) for name, value in variables.items()})
    return env


def shell_words(*command):
    return shlex.join(str(part) for part in command)


def run(command, env=None, **options):
    """Runs to the end; never raises for a status. Output is bytes."""
    options.setdefault("timeout", TIMEOUT_S)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([str(part) for part in command], env=env or clean_environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)


def record(command, output=None, env=None, **options):
    """Runs a command under the agent; returns its result and the folder of recordings."""
    output = output or scratch()
    result = run(command, agent_environment(output, **(env or {})), **options)
    return result, output


def torsh(*arguments, expect=0):
    """Output of a torsh command, as text."""
    result = run([TORSH, *arguments])
    if result.returncode != expect:
        raise AssertionError(f"torsh {' '.join(map(str, arguments))}: status {result.returncode}, expected {expect}\n"
                             + result.stderr.decode(errors="replace"))
    return result.stdout.decode()


def read_report(command, recording, *arguments):
    """The JSON that a torsh command prints for a recording."""
    return json.loads(torsh(command, recording, "--json", *arguments))


def leaks(recording, *arguments):
    return read_report("leaks", recording, "--limit", "0", *arguments)


def peak(recording, *arguments):
    return read_report("peak", recording, "--limit", "0", *arguments)


def recordings(output):
    return sorted(pathlib.Path(output).rglob("*.torsh"))


def functions(entry):
    return [frame.get("function") or "" for frame in entry["stack"]]


def bytes_at_end(leak):
    """All that a process had when it ended: its leaks, and what the report leaves out of them."""
    return leak["leaked_bytes"] + sum(leak[part]["bytes"] for part in
                                      ("bookkeeping", "inherited", "suppressed", "kept_by_imports",
                                       "kept_by_first_uses", "at_exec"))


def entries_through(entries, function):
    """Leaks or allocation sites with a function in their stack."""
    return [entry for entry in entries if function in functions(entry)]


def total(entries, field="bytes"):
    return sum(entry[field] for entry in entries)


def check_counts(events):
    """produced = delivered + dropped, and nothing was dropped."""
    assert events["produced"] == events["delivered"] + events["dropped"], events
    assert events["dropped"] == 0, events


def first_difference(found, expected, where=""):
    """The innermost place at which two values differ, and both of them there."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        inside = ((key, found[key], expected[key]) for key in found)
    elif isinstance(found, (list, tuple)) and type(found) is type(expected) and len(found) == len(expected):
        inside = ((i, found[i], expected[i]) for i in range(len(found)))
    else:
        return where, found, expected
    return next((first_difference(a, b, f"{where}[{key!r}]") for key, a, b in inside if a != b), (where, found, expected))


def expect_equal(found, expected, what):
    # To Pythons before 3.10 counters differ where one has a count of 0.
    if all(isinstance(side, collections.Counter) for side in (found, expected)):
        found, expected = ({key: n for key, n in side.items() if n} for side in (found, expected))
    if found != expected:
        where, found, expected = first_difference(found, expected)
        raise AssertionError(f"{what}{where and f', at {where}'}: found {found!r}, expected {expected!r}")


@contextlib.contextmanager
def started(command, env, **options):
    """A running process that is killed and reaped at the end, whatever happened."""
    options.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen([str(part) for part in command], env=env, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()

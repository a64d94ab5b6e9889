#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Real programs of many kinds under the agent, and every reading command and every export on what each of them left: the
program runs as it does bare, and all readers take the recording. `make test-tools` runs this with a writer and readers that
are sanitised.
"""

import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from family import complete  # noqa: E402
from live_targets import Target  # noqa: E402
from pythons import find_all  # noqa: E402
from simcuda import PROFILED, cuda_python, need_simcuda, preloaded, record_simulated  # noqa: E402

READERS = ("report", "leaks", "peak", "rss", "cpu", "ops", "blas", "requests", "steps", "modules", "kernels", "tensors", "regions")
NO_READERS = {"run", "serve", "mcp", "list", "snapshot", "keep", "top", "pause", "stop", "resume", "end", "diff", "validate", "html", "export", "dump",
              "open", "brief", "whatif", "workloads", "check", "fold", "merge", "merge-trace", "ranks"}
# What asks for more than the plain command does.
FURTHER = (("open",), ("brief",), ("brief", "--json"), ("dump",), ("check", "--max-leak", "1T"), ("leaks", "--growth"), ("leaks", "--growth", "--json"),
           ("leaks", "-v"), ("leaks", "--older-than", "1ms"), ("report", "-v"), ("peak", "--at", "5ms"),
           ("peak", "-v"),
           ("rss", "--at", "end", "--json"), ("rss", "--at", "peak"), ("leaks", "--depth", "2"),
           ("leaks", "--stacks", "native"), ("cpu", "--off"), ("cpu", "--gil"), ("cpu", "--off", "--json"))
# A recording that lacks what these show is refused: status 2.
MAY_REFUSE = (("whatif",), ("whatif", "--json"), ("leaks", "--why", "1"), ("leaks", "--why", "1", "--json"),
              ("leaks", "--why", "2"), ("leaks", "--why", "3", "--json"), ("peak", "--since", "start"),
              ("peak", "--device", "cuda:0", "--json"), ("ranks",), ("ranks", "--json"))

MIDDLE = range(9, 13)  # minor versions of CPython whose objects others of this list have the layouts of, too
OWNERS = """
import collections, sys, threading
class Node:
    def __init__(self, i):
        self.i, self.text = i, [bytes(i % 700)]
class Slots:
    __slots__ = ("left", "right")
cache = {f"key {i}": Node(i) for i in range(4000)}
big = [bytearray(20000) for _ in range(200)]
queue = collections.deque([(i, {i: str(i)}) for i in range(3000)], maxlen=3000)
odd = {frozenset([i, i + 1]) for i in range(500)}
slots = []
for i in range(1000):
    one = Slots()
    one.left, one.right = one, bytes(100)
    slots.append(one)
def closure():
    rows = [bytearray(5000) for _ in range(50)]
    return lambda: rows
kept = closure()
def generator():
    held = [bytearray(7000) for _ in range(50)]
    yield len(held)
    yield held
running = generator()
next(running)
del one
threads = [threading.Thread(target=lambda: [bytes(i) for i in range(2000)]) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(cache), len(big))
"""

WORKERS = """
import multiprocessing, os
def work(n):
    return len([bytearray(n) for _ in range(20)])
data = {str(i): [i] for i in range(5000)}
for way in ("fork", "spawn") if __name__ == "__main__" else ():
    pool = multiprocessing.get_context(way).Pool(2)
    print(sum(pool.map(work, range(1000, 1040))))
    pool.close()
    pool.join()
if __name__ == "__main__":
    pid = os.fork()
    if not pid:
        os.execvp("true", ["true"])
    os.waitpid(pid, 0)
"""

NODE = "const a = []; for (let i = 0; i < 50000; i++) a.push({i, s: 'v' + i}); console.log(Buffer.alloc(2e7, 1).length)"

SQLITE = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(i * 7919) from n;
create index x on t(b);
select count(*), sum(length(b)) from t where b like '3%';
"""

TRAINING = """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4))
optimizer = torch.optim.Adam(net.parameters())
history = []
loader = torch.utils.data.DataLoader([(torch.randn(3, 8, 8), i % 4) for i in range(96)], batch_size=16, num_workers=2)
for epoch in range(1):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        history.append(loss)
print(len(history))
"""

# Answers each letter with a dot; a function's variable keeps much when it is looked at.
ANSWERS = """
import sys
everything = []
def answer():
    rows = []
    while letter := sys.stdin.read(1):
        rows.append({letter: bytearray(100000)})
        everything.append([str(i) for i in range(3000)])
        print(end=".", flush=True)
answer()
"""


def expect_read(output, arguments, may_refuse=False):
    # What is read follows the first option where that takes a pid.
    at = 2 if "--now" in arguments else 1
    result = run([TORSH, *arguments[:at], output, *arguments[at:]], timeout=400)
    wanted = (0, 2) if may_refuse else (0,)
    errors = result.stderr.decode()[-3000:]
    assert result.returncode in wanted, f"torsh {shell_words(*arguments)}: {result.returncode}\n{errors}"
    if "--json" in arguments and not result.returncode:
        json.loads(result.stdout)


def formats():
    return re.findall(r"(?m)^  ([a-z]+): ", torsh("export", "--help"))


def expect_readers(output, is_large=False):
    """
    Every reading command and export takes the recording. A sanitised one takes ten seconds for the symbols of PyTorch: then
    it is done once.
    """
    for name in READERS:
        if not is_large:
            expect_read(output, (name,))
        expect_read(output, (name, "--json", "--limit", "30" if is_large else "0"))
    for arguments in () if is_large else FURTHER:
        expect_read(output, arguments)
    for arguments in MAY_REFUSE[:2] if is_large else MAY_REFUSE:
        expect_read(output, arguments, may_refuse=True)
    written = scratch("exports")
    for form in formats():
        # Some have nothing to write of a program without PyTorch.
        expect_read(output, ("export", "--format", form, "-o", written / form), may_refuse=True)
    expect_read(output, ("html", "-o", written / "page.html"))
    expect_read(output, ("fold", "-o", written / "one.fold"), may_refuse=True)
    if not is_large:
        result = run([TORSH, "diff", output, output, "--json"])
        expect_equal(result.returncode, 0, f"status of diff\n{result.stderr.decode()}")


def expect_recorded(command, is_large=False, **options):
    result, output = record(command, timeout=300, **options)
    expect_equal(result.returncode, 0, f"status of {command[0]}\n{result.stderr.decode()[-2000:]}")
    complete(output)
    expect_readers(output, is_large)


@case
def no_reading_command_is_left_out():
    listed = set(re.findall(r"(?m)^  torsh ([a-z-]+) ", torsh("--help").split("Start with:")[0]))
    expect_equal(listed, set(READERS) | NO_READERS, "commands")
    assert len(formats()) >= 12, formats()


PROGRAMS_OF_C = {
    "entries": (), "operators": (), "wasteful": (), "maps": (), "forks": (), "exceptions": (), "served": (),
    "growth_windows": (),
}
for _name, _arguments in PROGRAMS_OF_C.items():
    add_case(f"of_{_name}", expect_recorded, [PROGRAMS / _name, *_arguments])


@case
def of_all_events():
    expect_recorded([PROGRAMS / "entries"], env={"TORSH_PROFILER_RECORD": "full"})


def of_python(python):
    expect_recorded([python.path, "-c", OWNERS])


for _python in find_all():
    _add = add_long_case if _python.minor in MIDDLE else add_case
    _add(f"of_{_python.name}_with_owners", of_python, _python)


@case
@long
def of_python_with_its_allocators():
    expect_recorded([sys.executable, "-c", OWNERS], env={"TORSH_PROFILER_PYTHON_ALLOCATORS": "1"})


@case
def of_workers():
    path = scratch("program") / "workers.py"
    path.write_text(WORKERS)
    expect_recorded([sys.executable, path])


@case
def of_sqlite():
    expect_recorded([need_command("sqlite3"), ":memory:", SQLITE])


@case
def of_node():
    if not shutil.which("node"):
        raise Skip("node is not on this machine")
    expect_recorded(["node", "-e", NODE])


@case
@long
@needs("torch")
def of_a_training():
    path = scratch("program") / "train.py"
    path.write_text(TRAINING)
    expect_recorded([torch_python(), path], is_large=True)


@case
@long
@needs("torch")
def of_a_simulated_device():
    output, _ = record_simulated([cuda_python(), "-c", PROFILED, scratch("traces"), "1"])
    expect_readers(output, is_large=True)


@case
def of_a_program_of_cuda():
    need_simcuda()
    _, output = record([PROGRAMS / "cuda_client"], env={"LD_PRELOAD": f"{AGENT}:{preloaded()}"})
    complete(output)
    expect_readers(output)


@case
def of_one_that_is_killed_and_was_looked_at():
    with Target([sys.executable, "-c", ANSWERS]) as target:
        target.send("abcdefgh")
        for command in (("leaks",), ("leaks", "--json"), ("leaks", "--why", "1"), ("leaks", "--why", "2", "--json")):
            expect_read(target.pid, (command[0], "--now", *command[1:]))
        snapshot = scratch("snapshot") / "now.torsh"
        expect_equal(run([TORSH, "snapshot", target.pid, "-o", snapshot]).returncode, 0, "status of snapshot")
        expect_readers(snapshot)
        expect_read(target.output, ("rss",))
        target.send("ijkl")
        target.process.send_signal(signal.SIGKILL)
        target.process.wait()
        complete(target.output)
        expect_readers(target.output)


main()

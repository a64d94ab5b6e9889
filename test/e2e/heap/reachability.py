#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What is lost and what is kept, against LeakSanitizer and Valgrind's memcheck on the same program: each block has the
class that these give it, apart from what the tables below say and why.
"""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from checkers.verdicts import of_lsan, of_memcheck, only, ours, totals, with_lsan  # noqa: E402

SOURCE = ROOT / "test/programs/heap/reach.cc"
PROGRAM = PROGRAMS / "reach"
NODE = 64
REACHABLE = 4  # enum verdict

# Neither divides what is kept as memcheck does: LeakSanitizer takes any pointer into a block for one to its begin.
OTHERWISE_FOR_LSAN = {
    "mapped": "memory that the program maps is no root there",
    "lost_cycle": "both blocks of a cycle are indirect there",
    "lost_shared_cycle": "both blocks of a cycle are indirect there",
    "destroyed_owner": "pointers in what the destructor freed count there, until that is given out again",
}
OTHERWISE_FOR_MEMCHECK = {
    "thread_specific": "the C library's table for keys from 32 on is among the program's blocks there",
    "waiting_thread": "the thread's table of thread-local storage is among the program's blocks there, and possibly lost",
}


def cases():
    return run([PROGRAM]).stdout.decode().split()


def judged(name, **variables):
    return ours(SOURCE, [PROGRAM, name], **variables)


def expect_differences(found, explained):
    """found: by case what is ours and what is theirs, where these differ."""
    unexplained = {name: difference for name, difference in found.items() if name not in explained}
    expect_equal(unexplained, {}, "differences")
    expect_equal(set(explained) - set(found), set(), "differences that are none any more")


@case
def blocks_have_the_classes_that_leak_sanitizer_gives_them():
    program, found, n_lost = with_lsan(SOURCE, scratch("lsan")), {}, 0
    for name in cases():
        theirs, mine = of_lsan(SOURCE, [program, name]), only(judged(name), ("lost", "indirect"))
        n_lost += totals(mine)["lost"][0]
        if mine != theirs:
            found[name] = mine, theirs
    expect_differences(found, OTHERWISE_FOR_LSAN)
    assert n_lost > 10, n_lost


@case
def blocks_have_the_classes_that_memcheck_gives_them():
    folder, found = scratch("memcheck"), {}
    for name in cases():
        mine, theirs = judged(name), of_memcheck(SOURCE, [PROGRAM, name], folder / f"{name}.xml")
        if mine != theirs:
            found[name] = mine, theirs
    expect_differences(found, OTHERWISE_FOR_MEMCHECK)


@case
def who_keeps_a_block_is_named():
    _, output = record([PROGRAM, "global_zero"])
    report = leaks(output)
    (number,) = [i for i, leak in enumerate(report["leaks"], 1) if leak["blocks"] == 3]
    why = read_report("leaks", output, "--limit", "0", "--why", str(number))["why"]
    expect_equal([step["kind"] for step in why], ["global", *["block"] * (len(why) - 1)], "kinds")
    expect_equal(why[0]["name"], f"uninitialized in {PROGRAM}", "the root")
    expect_equal({step["bytes"] for step in why[1:]}, {NODE}, "sizes of the blocks")
    assert torsh("leaks", output, "--kept", "--why", "1").startswith("uninitialized in "), "the same as text"
    torsh("leaks", output, "--why", "99", expect=2)


@case
def with_the_agents_jemalloc_blocks_have_the_same_classes():
    """Its tables have pointers to all blocks, and are in the program's memory: they are known by what they contain."""
    for name in cases():
        expect_equal(judged(name, TORSH_PROFILER_ALLOCATOR="jemalloc"), judged(name), f"classes of {name}")


@case
def the_agents_data_end_where_an_area_does():
    """Else what the loader maps right behind them, thread-local storage, would count as the agent's: one start in 100 had that."""
    segments = re.findall(r"^ +LOAD +0x\w+ 0x(\w+) 0x\w+ 0x\w+ 0x(\w+)", run(["readelf", "-lW", AGENT]).stdout.decode(), re.M)
    n_bytes = max(int(begin, 16) + int(size, 16) for begin, size in segments)
    for variables in ({}, {"TORSH_PROFILER_ALLOCATOR": "jemalloc"}):
        result, _ = record(["cat", "/proc/self/smaps"], env=variables)
        areas = re.findall(r"^(\w+)-(\w+) (\S+) (\w+) \S+ \d+ +(.*)((?:\n[A-Z].*)*)", result.stdout.decode(), re.M)
        first = next(int(begin, 16) for begin, *_, offset, path, _ in areas if int(offset, 16) == 0 and path.endswith(AGENT.name))
        page = os.sysconf("SC_PAGESIZE")
        (last,) = [area for area in areas if int(area[1], 16) == first + (n_bytes + page - 1) // page * page]
        assert " dd" in last[-1], f"the last area of the agent's data can be joined with what follows: {last}"


def why_not(*arguments, **variables):
    result, output = record([PROGRAM, *arguments], env=variables)
    report = leaks(output)
    expect_equal(report["reachability"]["judged"], False, f"whether it was judged with {variables}")
    expect_equal({leak["class"] for leak in report["leaks"]}, {"unknown"}, "classes")
    assert "not judged" in torsh("leaks", output), torsh("leaks", output)
    return report["reachability"]["reason"]


@case
def what_is_not_judged_says_why():
    assert why_not("large", TORSH_PROFILER_HEAP="sampled").endswith("blocks are sampled")
    assert why_not("large", TORSH_PROFILER_REACHABILITY="0").endswith("TORSH_PROFILER_REACHABILITY was 0, or its writer was not ready")


def verdicts_of(output):
    return [json.loads(line)["verdicts"] for line in torsh("dump", output, "--only", "verdicts").splitlines()]


@case
def memory_is_read_only_where_a_block_is_left():
    program = scratch("left") / "left"
    source = program.with_suffix(".c")
    source.write_text("#include <stdlib.h>\nint main(int n, char **words) { void *p = malloc(1000); "
                      "*(char *volatile *)words = p; if (n == 1) free(p); return 0; }\n")
    expect_equal(run(["cc", "-o", program, source]).returncode, 0, "compiler")
    (of_none,) = verdicts_of(record([program])[1])
    expect_equal((of_none.get("reason"), of_none["blocks"], of_none["read_bytes"]), (None, [], 0), "without a block")
    (of_block,) = verdicts_of(record([program, "keep"])[1])
    expect_equal((of_block["verdict"], of_block["bytes"]), ([REACHABLE], [1000]), "class and size")
    assert of_block["read_bytes"] > 0, of_block


@case
def the_process_is_as_without_it():
    """Exit status, output, children and the dispositions of signals, judged and not: what a debugger would change."""
    script = "echo $$ >&2; trap 'echo caught' USR1; kill -USR1 $$; sleep 0 & wait; grep -E 'Sig(Ign|Cgt)|TracerPid' /proc/$$/status; exit 5"
    judged, output = record(["sh", "-c", script])
    bare = run(["sh", "-c", script])
    expect_equal((judged.returncode, judged.stdout), (bare.returncode, bare.stdout), "status and output")
    expect_equal(leaks(output)["reachability"]["judged"], True, "whether all were judged")


main()

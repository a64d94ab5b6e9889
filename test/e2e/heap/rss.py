#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Who owns resident memory: the sum of all owners is RSS to the byte, and what the programs below make has the owner that they
know, by their own reading of /proc/self/smaps and pagemap, or by the number of pages that they touch.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

PAGE = os.sysconf("SC_PAGESIZE")
MIB = 1 << 20
# Between the program's reading and its end: pages of code that the end needs, the stack's, and the agent's own, which become
# fewer where the writer has emptied a ring.
SLACK = MIB

PROGRAM = PROGRAMS / "resident"


def rss(output, *arguments):
    report = read_report("rss", output, *arguments)
    expect_fits("rss", report)
    if report["rss_bytes"] is not None:
        expect_equal(sum(owner["bytes"] for owner in report["owners"]), report["rss_bytes"], "sum of all owners")
        expect_equal(sum(report["kinds"].values()), report["rss_bytes"], "sum of all kinds")
        expect_equal(report["kinds"]["changed"], 0, "bytes that changed") if report["held"] else None
    return report


def bytes_of(report, kind, name):
    return sum(owner["bytes"] for owner in report["owners"] if owner["kind"] == kind and name in (owner["name"] or ""))


def quiet(**env):
    """The account at the end, and what the program read right before."""
    folder = scratch("mapped")
    result, output = record([PROGRAM, "quiet", folder / "file"], env=env)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    truth = {name: int(number) for name, number in (line.split() for line in result.stdout.decode().splitlines())}
    return rss(output, "--at", "end"), truth, output, folder / "file"


@case
def the_sum_is_what_the_program_reads_of_itself():
    report, truth, output, _ = quiet()
    expect_equal((report["at_exit"], report["held"], report["undivided"]), (True, True, None), "how it was taken")
    assert abs(report["rss_bytes"] - truth["rss"]) <= SLACK, (report["rss_bytes"], truth)
    assert abs(report["pss_bytes"] - truth["pss"]) <= SLACK, (report["pss_bytes"], truth)
    for moment in ("peak", "end"):
        other = rss(output, "--at", moment)
        assert other["rss_bytes"] <= report["rss_bytes"] + SLACK, other


@case
def each_owner_has_the_bytes_that_the_program_knows():
    report, truth, _, file = quiet()
    found = {
        "small": bytes_of(report, "heap", "small_blocks"),
        "large": bytes_of(report, "heap", "large_block"),
        "untouched": bytes_of(report, "heap", "untouched_block"),
        "mapped": bytes_of(report, "mapped", "map_some"),
        "file": bytes_of(report, "file", str(file)),
        "shared": bytes_of(report, "shared", "map_shared"),
        "stack": bytes_of(report, "stack", "first thread"),
    }
    expect_equal(found, {name: truth[name] for name in found} | {"stack": found["stack"]}, "bytes by owner")
    assert truth["stack"] <= found["stack"] <= truth["stack"] + SLACK / 4, (found, truth)
    assert truth["untouched"] <= PAGE, truth  # a gigabyte that owns its header's page
    assert bytes_of(report, "stack", "counted") >= 50 * PAGE, report["owners"]


@case
def an_arena_is_live_blocks_overhead_and_what_is_retained():
    report, truth, output, _ = quiet()
    live = sum(part["live_bytes"] for part in report["fragments"] if part["arena"] == "glibc, main arena")
    rest = bytes_of(report, "overhead", "glibc, main arena") + bytes_of(report, "retained", "glibc, main arena")
    expect_equal(live + rest, truth["arena"], "bytes of the arena")
    # 49 of 50 blocks were freed, each in a chunk of 208 bytes: they are there, and no leak.
    freed = 20000 // 50 * 49 * 208
    assert freed <= report["kinds"]["retained"] <= freed + MIB / 2, (report["kinds"], freed)
    expect_equal(sum(part["free_bytes"] for part in report["fragments"]), report["kinds"]["retained"], "free bytes")
    left = [entry for entry in leaks(output)["leaks"] if any("small_blocks" in name for name in functions(entry))]
    expect_equal(sum(entry["blocks"] for entry in left), 20000 // 50, "blocks of that line that are live")


@case
def a_fork_has_the_pages_that_it_inherited_and_those_that_it_wrote_to():
    result, output = record([PROGRAM, "forked"])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    processes = rss(output)["processes"]
    expect_equal(len(processes), 2, "processes")
    report = rss(output, "--pid", str(processes[1]["pid"]), "--at", "end")
    expect_equal(report["inherited_is_known"], True, "whether the inherited pages are known")
    # The first byte of each page is written, and the block begins behind a header in its first page.
    expect_equal((bytes_of(report, "cow", "large_block"), bytes_of(report, "cow", "map_some")),
                 (321 * PAGE - 16, 45 * PAGE), "copied bytes")
    text = 4 * MIB
    least = (700 - 321 + 123 - 45) * PAGE + text
    assert least <= report["kinds"]["inherited"] <= least + MIB, (report["kinds"], least)
    most = max((owner for owner in report["owners"] if owner["kind"] == "cow"), key=lambda owner: owner["bytes"])
    assert "large_block" in most["name"], most
    assert f"most of them with: {most['name']}" in torsh("rss", output, "--pid", str(processes[1]["pid"])), most
    parent = rss(output, "--pid", str(processes[0]["pid"]))
    expect_equal((parent["kinds"]["cow"], parent["kinds"]["inherited"]), (0, 0), "what is no fork's")


@case
def shared_memory_counts_once_in_the_sum_of_all_processes():
    result, output = record([PROGRAM, "sharing"])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    report = rss(output)
    size = 1000 * PAGE
    for process in report["processes"]:
        one = rss(output, "--pid", str(process["pid"]), "--at", "end")
        expect_equal(bytes_of(one, "shared", ""), size, f"shared bytes of {process['pid']}")
    tree = report["tree"]
    assert tree["processes"] >= 2, tree
    assert tree["rss_bytes"] - tree["pss_bytes"] >= (tree["processes"] - 1) * size, tree


def killed(**env):
    """The recording of a process that was killed once it was accounted for."""
    output = scratch()
    with started([PROGRAM, "killed"], agent_environment(output, **env), stdout=subprocess.PIPE) as process:
        expect_equal(process.stdout.readline(), b"grown %d\n" % (64 * MIB), "line")

        def accounted():
            snapshot = scratch("snapshot") / "snapshot.torsh"
            taken = run([TORSH, "snapshot", str(process.pid), "-o", snapshot])
            return taken.returncode == 0 and (rss(snapshot)["rss_bytes"] or 0) > 64 * MIB
        wait_until(accounted, "an account")
        process.kill()
        process.wait()
    wait_until(lambda: not read_report("rss", output)["recording"]["being_written"], "the end of the recording")
    return output


@case
def a_killed_process_has_its_last_account():
    output = killed()
    report = rss(output, "--at", "end")
    # The process may have grown by less than what makes another account due.
    assert 58 * MIB <= bytes_of(report, "heap", "killed") <= 64 * MIB, report["kinds"]
    expect_equal((report["at_exit"], report["held"], report["undivided"]), (False, False, None), "how it was taken")
    assert "its last account is from" in torsh("rss", output), torsh("rss", output)


@case
def sampled_blocks_are_not_told_from_free_memory():
    report = rss(killed(TORSH_PROFILER_HEAP="sampled:64K"))
    assert "sampled" in report["undivided"], report["undivided"]
    expect_equal((report["kinds"]["retained"], report["kinds"]["overhead"], report["fragments"]), (0, 0, []), "what is retained")


LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2"}


def of_another_allocator(name):
    library = next(iter(sorted(pathlib.Path("/usr/lib").glob(f"*/{LIBRARIES[name]}"))), None)
    if not library:
        raise Skip(f"{LIBRARIES[name]} is not on this machine")
    report, truth, _, _ = quiet(LD_PRELOAD=f"{AGENT}:{library}")
    found = {"small": bytes_of(report, "heap", "small_blocks"), "large": bytes_of(report, "heap", "large_block"),
             "mapped": bytes_of(report, "mapped", "map_some")}
    expect_equal(found, {kind: truth[kind] for kind in found}, "bytes by owner")
    assert abs(report["rss_bytes"] - truth["rss"]) <= SLACK, (report["rss_bytes"], truth)
    expect_equal({owner["name"] for owner in report["owners"] if owner["kind"] == "retained"}, {name}, "who retains")
    # What was freed, and what the allocator has mapped beyond that.
    freed = 20000 // 50 * 49 * 200
    assert freed <= report["kinds"]["retained"] <= freed + 8 * MIB, (report["kinds"], freed)


for name in LIBRARIES:
    add_case(f"what_{name}_retains", of_another_allocator, name)


@case
def many_stacks_are_added_up_by_line():
    n = 1 << 14
    result, output = record([PROGRAMS / "crowd", "stacks", "14"])
    expect_equal(result.returncode, 0, "status")
    report = rss(output)
    named = [owner for owner in report["owners"] if owner["kind"] == "heap" and "crowd.c" in (owner["name"] or "")]
    assert sum(owner["bytes"] for owner in named) >= 16 * n, [owner for owner in report["owners"] if owner["kind"] == "heap"][:9]


PYTHON = r"""
import os
kept = [[i] for i in range(200000)]
def use():
    for item in kept[:100000]:
        pass
if not os.fork():
    use()
    os._exit(0)
os.wait()
"""


@case
def counts_of_references_copy_the_objects_pages_in_a_fork():
    script = scratch("script") / "refs.py"
    script.write_text(PYTHON)
    result, output = record([sys.executable, script])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    first, child = rss(output)["processes"][-2:]
    parent = rss(output, "--pid", str(first["pid"]))
    # A list of one item takes 88 bytes, its header included, and the items 8: most are objects in arenas.
    assert bytes_of(parent, "cpython", "refs.py:3") >= 200000 * 64, parent["kinds"]
    report = rss(output, "--pid", str(child["pid"]), "--at", "end")
    copied = [owner for owner in report["owners"] if owner["kind"] == "cow"]
    assert "refs.py:3" in copied[0]["name"] and "small objects" in copied[0]["name"], copied[0]
    assert copied[0]["bytes"] >= 100000 * 56, copied[0]


@case
def the_agents_own_memory_is_not_the_programs():
    report, _, _, _ = quiet()
    assert bytes_of(report, "agent", "libtorshagent.so") > 100000, report["kinds"]
    assert bytes_of(report, "agent", "channel") > 0, report["kinds"]
    assert not any("torsh" in (owner["name"] or "") for owner in report["owners"] if owner["kind"] != "agent"), report


@case
def an_older_recording_has_no_account():
    old = sorted((ROOT / "test/e2e/recordings").glob("format-*/*.torsh"))[0]
    report = rss(old)
    expect_equal((report["rss_bytes"], report["owners"], report["tree"]), (None, [], None), "what is not recorded")
    assert all(process["reason"] for process in report["processes"]), report["processes"]
    assert "No resident memory was accounted for" in torsh("rss", old), torsh("rss", old)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The variables, the messages about wrong values, and the reasons for programs that cannot be
recorded."""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

ENTRIES = PROGRAMS / "entries"


def printed(env, program=(ENTRIES,)):
    """The agent's messages on stderr, by line."""
    result, output = record(program, env=env)
    expect_equal(result.returncode, 0, "status")
    return result.stderr.decode().splitlines(), output


@case
def an_inert_agent_does_nothing():
    lines, output = printed({"TORSH_PROFILER_ENABLED": "0"})
    expect_equal((lines, recordings(output), list(output.iterdir())), ([], [], []), "words and files")


@case
def an_unknown_variable_is_named_once():
    lines, output = printed({"TORSH_PROFILER_RNIG": "65536"})
    about = [line for line in lines if "TORSH_PROFILER_RNIG" in line]
    expect_equal(len(about), 1, f"lines about it in {lines}")
    assert "RING" in about[0], f"what there is instead is not printed: {about[0]}"
    assert recordings(output)


@case
def an_unknown_variable_is_named_once_in_a_whole_tree():
    command = ["bash", "-c", f"for i in 1 2 3; do {shell_words(ENTRIES)}; done; ({shell_words(ENTRIES)})"]
    lines, _ = printed({"TORSH_PROFILER_RNIG": "65536"}, command)
    expect_equal(len([line for line in lines if "TORSH_PROFILER_RNIG" in line]), 1, f"lines about it in {lines}")


BAD_VALUES = (("ENABLED", "maybe"), ("SIGNAL", "INT"), ("SIGNAL", "RTMIN+31"), ("KEEP", "signal:KILL"), ("RING", "12"), ("RING", "-1"), ("RECORD", "sometimes"), ("FOLLOW", "2"),
              ("ACTIVITIES", "heap,gossip"), ("ACTIVITIES", "pref"), ("EXPORT_FORMAT", "pdf"), ("MAX_SIZE", "much"), ("ALLOCATOR", "other"), ("SCHEDULE", "wait:1"),
              ("SCHEDULE", "active:two"))


def bad_value(name, value):
    lines, output = printed({f"TORSH_PROFILER_{name}": value})
    about = [line for line in lines if f"TORSH_PROFILER_{name}" in line and value in line]
    expect_equal(len(about), 1, f"lines about {name}={value} in {lines}")
    assert recordings(output), "the default was not used"


@case
def cpu_is_everything_that_the_host_does():
    lines, output = printed({"TORSH_PROFILER_ACTIVITIES": "cpu,cuda"}, (PROGRAMS / "regions",))
    expect_equal(lines, [], "messages of the agent")
    assert read_report("report", output)["heap"]["allocations"], "the heap was not recorded"
    assert read_report("regions", output)["regions"], "ranges were not recorded"


for row in BAD_VALUES:
    add_case(f"bad_value_of_{row[0].lower()}_{row[1].replace('-', 'minus').replace(',', '_')}", bad_value, *row)


@case
def no_word_without_need():
    lines, _ = printed({})
    expect_equal(lines, [], "words")


@case
def a_summary_is_printed_where_it_is_wanted():
    result, output = record([ENTRIES], env={"TORSH_PROFILER_SUMMARY": "1"})
    wait_until(lambda: recordings(output), "a recording")
    expect_equal(result.returncode, 0, "status")
    expect_equal(result.stdout, b"", "stdout")
    assert b"entries" in result.stderr and str(output).encode() in result.stderr, f"summary: {result.stderr!r}"


@case
def placeholders_name_the_output():
    folder = scratch("places")
    result, _ = record([ENTRIES], output=folder / "%n-%p-%h")
    expect_equal(result.returncode, 0, "status")
    made = [path.name for path in folder.iterdir()]
    expect_equal(len(made), 1, f"what was made: {made}")
    name, pid, host = made[0].split("-", 2)
    assert name == "entries" and pid.isdigit() and host == os.uname().nodename, made[0]


@case
def only_named_programs_are_recorded():
    command = ["bash", "-c", f"{shell_words(ENTRIES)}; {shell_words(PROGRAMS / 'operators')}; true"]
    result, output = record(command, env={"TORSH_PROFILER_FILTER": "operators"})
    expect_equal(result.returncode, 0, "status")
    report = leaks(output)
    expect_equal([pathlib.Path(p["program"]).name for p in report["processes"]], ["operators"], "programs recorded")


def build(name, source, *flags):
    folder = scratch("built")
    (folder / f"{name}.c").write_text(source)
    made = run(["gcc", "-g", "-O1", "-o", folder / name, folder / f"{name}.c", *flags])
    if made.returncode:
        missing(f"can't be built here: {made.stderr.decode()[-200:]}")
    return folder / name


PLAIN = "#include <stdlib.h>\nint main(void) { void *volatile p = malloc(10); return !p; }\n"
OWN_MALLOC = """
#include <stddef.h>
#include <string.h>
static char heap[1 << 20] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t n) { void *p = heap + used; used += (n + 31) & ~(size_t)15; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
int main(void) { void *volatile p = malloc(10); return !p; }
"""


@case
def a_malloc_of_the_programs_own_is_named():
    program = build("own_malloc", OWN_MALLOC)
    result, output = record([program])
    expect_equal(result.returncode, 0, "status")
    text = torsh("report", output)
    assert "own" in text and "malloc" in text, f"the report does not contain why it is empty:\n{text}"


@case
def a_static_program_is_refused_with_a_reason():
    program = build("static_program", PLAIN, "-static")
    result = run([TORSH, "run", "-o", scratch() / "out", "--", program])
    assert result.returncode != 0
    assert b"static" in result.stderr, f"printed: {result.stderr!r}"


@case
def a_setuid_program_is_refused_with_a_reason():
    need_root()
    program = build("setuid_program", PLAIN)
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    result = run([TORSH, "run", "-o", scratch() / "out", "--", program])
    assert result.returncode != 0
    assert b"setuid" in result.stderr, f"printed: {result.stderr!r}"


@case
def torsh_run_records_and_hands_on_the_status():
    output = scratch() / "out"
    result = run([TORSH, "run", "--agent", AGENT, "-o", output, "--", PROGRAMS / "lifecycle", "at_exit"])
    expect_equal(result.returncode, 25, "status")
    assert recordings(output)


@case
def an_agent_below_a_blank_harms_no_child():
    folder = scratch("with a blank")
    for file in (AGENT, BUILD / "torsh-writer"):
        shutil.copy(file, folder)
    command = [sys.executable, "-c", "import subprocess; print(subprocess.run(['true'], cwd='/').returncode)"]
    result, output = record(command, cwd=folder, env={"LD_PRELOAD": f"./{AGENT.name}"})
    expect_equal((result.returncode, result.stdout), (0, b"0\n"), f"status and output ({result.stderr!r})")
    assert "LD_PRELOAD can't hold" in torsh("report", output), "no word about it in the report"

    shutil.copy(TORSH, folder)
    result = run([folder / "torsh", "run", "--", ENTRIES])
    expect_equal(result.returncode, 2, "status of torsh run")
    assert b"symbolic link" in result.stderr, f"stderr: {result.stderr!r}"
    links, by_link = preloadable(folder), scratch("by-link")
    result = run([folder / "torsh", "run", "--no-summary", "-o", by_link, "--", ENTRIES],
                 dict(clean_environment(), TORSH_AGENT=str(links / AGENT.name)))
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr by way of a link")
    torsh("leaks", by_link)


@case
def a_directory_with_spaces_works():
    folder = scratch("with some spaces")
    for name in ("libtorshagent.so", "torsh-writer"):
        shutil.copy2(BUILD / name, folder / name)
    # LD_PRELOAD takes no spaces: by a name without a folder, found in one that may have them.
    env = dict(agent_environment(folder / "the output"), LD_PRELOAD="libtorshagent.so", LD_LIBRARY_PATH=str(folder))
    result = run([ENTRIES], env)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    assert recordings(folder / "the output")


main()

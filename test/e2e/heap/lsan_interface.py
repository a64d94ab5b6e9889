#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A program's calls of LeakSanitizer, where that is present, apply to the agent's leaks too."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

TEXT = r"""
#include <pthread.h>
#include <stdlib.h>
#define WEAK(declaration) __attribute__((weak)) declaration
#ifdef __cplusplus
#define NEW(n) ::operator new(n)
extern "C" {
#else
#define NEW(n) malloc(n)
#endif
WEAK(void __lsan_disable(void));
WEAK(void __lsan_enable(void));
WEAK(void __lsan_ignore_object(const void *));
WEAK(int __lsan_do_recoverable_leak_check(void));
WEAK(void __lsan_do_leak_check(void));
#define CALL(function, ...) do { if (function) function(__VA_ARGS__); } while (0)
#define KEPT __attribute__((noinline))
void *volatile kept[16];
static int unused;
KEPT void leak_before(void) { kept[0] = malloc(100); }
KEPT void hide_one(void) { kept[1] = malloc(200); CALL(__lsan_ignore_object, kept[1]); }
KEPT void hide_all(void)
{
	CALL(__lsan_disable);
	CALL(__lsan_disable);
	kept[2] = malloc(300);
	CALL(__lsan_enable);
	kept[3] = calloc(1, 400);
	kept[4] = realloc(malloc(5), 500);
	kept[5] = aligned_alloc(64, 640);
	kept[6] = NEW(700);
	CALL(__lsan_enable);
}
static void *run(void *argument) { kept[7] = malloc(800); return argument; }
KEPT void leak_in_a_thread_meanwhile(void)
{
	pthread_t thread;

	CALL(__lsan_disable);
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	CALL(__lsan_enable);
}
KEPT void leak_after(void) { kept[8] = malloc(900); }
#ifdef __cplusplus
}
#endif
int main(void)
{
	leak_before();
	hide_one();
	hide_all();
	leak_in_a_thread_meanwhile();
	leak_after();
	CALL(__lsan_ignore_object, NULL);
	CALL(__lsan_ignore_object, &unused); /* no block */
	CALL(__lsan_enable); /* once too often */
	free(kept[3]);
	CALL(__lsan_do_leak_check);
	return __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
}
"""


def check(compiler, **environment):
    source = scratch("program") / ("program.cc" if compiler == "g++" else "program.c")
    source.write_text(TEXT)
    program = source.with_suffix("")
    expect_equal(run([compiler, "-g", "-O1", "-fno-builtin", "-w", "-pthread", "-o", program, source]).returncode, 0, "compiler")
    result, output = record([program], env=environment)
    expect_equal(result.returncode, 0, result.stderr)
    report = leaks(output)
    by_size = sorted(entry["bytes"] // entry["blocks"] for entry in report["leaks"] if "main" in functions(entry) or
                     "run" in functions(entry))
    expect_equal(by_size, [100, 800, 900], "sizes of leaks")
    rules = {rule["rule"]: (rule["bytes"], rule["blocks"]) for rule in report["suppressed"]["by"]}
    size, blocks = rules.get("^__lsan_ignore_object$", (0, 0))
    # With what the C library keeps of the thread, which this one made.
    assert (size > 200 + 300 + 500 + 640 + 700, blocks) == (True, 6), (size, blocks)
    events = report["events"]
    expect_equal((events["unknown_frees"], events["implicit_frees"], events["dropped"]), (0, 0, 0), "unknown, implicit, dropped")
    # The places of their allocation are still recorded.
    peaks = [functions(entry) for entry in peak(output)["holders"]]
    assert any(names[0] == "__lsan_ignore_object" and "hide_one" in names for names in peaks), peaks


RULES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *volatile kept[8];
#define KEPT __attribute__((noinline))
KEPT void leak_known(void) { kept[0] = malloc(1001); }
KEPT void leak_also_known(void) { kept[1] = malloc(1002); }
KEPT void leak_unknown(void) { kept[2] = malloc(1003); }
int main(void)
{
	leak_known(), leak_also_known(), leak_unknown();
	return 0;
}
"""
OWN_RULES = r"""
const char *__lsan_default_suppressions(void) { return "# ours\nleak:leak_known\nleak:^leak_also_*$\n"; }
"""
RUNNING_RULES = r"""
#include <unistd.h>
const char *__lsan_default_suppressions(void) { write(1, "called\n", 7); return "leak:leak_known\n"; }
"""


def compile_rules(folder, *texts, flags=()):
    source = scratch(folder) / "program.c"
    source.write_text("".join(texts))
    program = source.with_suffix("")
    expect_equal(run(["gcc", "-g", "-fno-builtin", "-w", *flags, "-o", program, source]).returncode, 0, "compiler")
    return program


def leaks_by_function(output):
    return {next(name for name in functions(entry) if name.startswith("leak_")) for entry in leaks(output)["leaks"]}


def program_with_rules(*flags):
    result, output = record([compile_rules("program", RULES, OWN_RULES, flags=flags)], scratch("recording"))
    expect_equal((result.returncode, result.stdout), (0, b""), result.stderr)
    expect_equal(leaks_by_function(output), {"leak_unknown"}, "leaks")
    rules = {rule["rule"]: (rule["bytes"], rule["blocks"]) for rule in leaks(output)["suppressed"]["by"]}
    expect_equal((rules.get("leak_known"), rules.get("^leak_also_*$")), ((1001, 1), (1002, 1)), "rules")
    printed = torsh("leaks", output, "--kept")
    assert "by leak:leak_known (the program's own)" in printed, printed


for name, flags in ("", ["-O1"]), ("_without_optimisation", ["-O0"]), ("_at_a_fixed_address", ["-O1", "-no-pie", "-fno-pie"]), (
        "_that_exports_them", ["-O2", "-rdynamic"]):
    add_case("rules_of_a_program" + name, program_with_rules, *flags)


@case
def rules_of_a_program_are_read_without_running_it():
    result, output = record([compile_rules("program", RULES, RUNNING_RULES)], scratch("recording"))
    expect_equal((result.returncode, result.stdout), (0, b""), result.stderr)
    expect_equal(leaks_by_function(output), {"leak_known", "leak_also_known", "leak_unknown"}, "leaks")
    notes = " ".join(read_report("report", output)["notes"])
    assert "__lsan_default_suppressions does more than return a constant text" in notes, notes


@case
def rules_of_a_program_are_for_its_own_leaks():
    """Another program in the same session has none, and lines that are not understood leave those before in force."""
    other = compile_rules("other", RULES)
    broken = r"""
const char *__lsan_default_suppressions(void) { return "leak:leak_known\nnonsense\nleak:leak_also_known\n"; }
"""
    program = compile_rules("program", RULES, broken)
    result, output = record(["sh", "-c", f"{program}; {other}"], scratch("recording"))
    expect_equal(result.returncode, 0, result.stderr)
    found = sorted(entry["bytes"] for entry in leaks(output)["leaks"] if "main" in functions(entry))
    expect_equal(sum(found), 1002 + 1003 + 1001 + 1002 + 1003, f"bytes of leaks, {found}")


@case
def of_a_c_program():
    check("gcc")


@case
def of_a_full_recording():
    check("gcc", TORSH_PROFILER_RECORD="full")


@case
def of_a_cpp_program_with_jemalloc():
    check("g++", LD_PRELOAD=f"{AGENT}:{need_library('libjemalloc.so.2')}")


main()

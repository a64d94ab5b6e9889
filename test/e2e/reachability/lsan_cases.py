#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What LeakSanitizer's own test cases show (compiler-rt/test/lsan/TestCases): each of their blocks is lost, or not, as
LeakSanitizer finds in the same program, apart from what the table says and why. The table is printed.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from checkers.verdicts import as_text, by_line, of_lsan, only, ours, report_of, totals, with_lsan  # noqa: E402

SOURCES = [ROOT / f"test/programs/reachability/{name}.cc" for name in ("lsan_cases", "lsan_threads")]
THREADS = SOURCES[1]
LIBRARY = PROGRAMS / "liblocal.so"
LOST = ("lost", "indirect")

OTHERWISE = {
    "malloc_zero": "no byte was asked for; LeakSanitizer takes it for one",
    "swapcontext_heap": "LeakSanitizer leaves out what is allocated on a stack that it can't walk",
    "leak_check_segv": "pages that can't be read end LeakSanitizer's search; from outside the process the others are read",
}
# Lost in truth. Either one may find a pointer in a part of the dead frame that the functions of an exit leave as it is.
BY_CHANCE = {"exit_atexit_stale_stack": "as it happens: functions of an exit cover the dead frame, but for some of its parts"}

FILES = """
cleanup_in_tsd_destructor.c create_thread_leak.cpp default_options.cpp detached_thread_dlsym.c disabler.c disabler.cpp
disabler_in_tsd_destructor.c dispatch_continuations.mm do_leak_check_override.cpp double_free.cpp double_free_eviction.cpp
double_free_fork.cpp double_free_hooks.cpp double_free_large.cpp double_free_max_entries.cpp double_free_realloc.cpp
double_free_sized.cpp double_free_threaded.cpp exit_atexit_stale_stack.cpp flag_retries.c flag_tries.c fork_and_leak.cpp
fork_threaded.cpp guard-page.c high_allocator_contention.cpp ignore_object.c invalid_free.cpp large_allocation_leak.cpp
leak_check_at_exit.cpp leak_check_before_thread_started.cpp leak_check_segv.cpp libdl_deadlock.cpp link_turned_off.cpp
log-path_test.cpp lsan_annotations.cpp lsan_crash.cpp malloc_zero.c many_tls_keys_pthread.cpp many_tls_keys_thread.cpp
pointer_to_self.cpp print_threads.c realloc_failure_keeps_original.cpp realloc_too_big.c realloc_zero.c
recoverable_leak_check.cpp register_root_region.cpp signal_during_stop_the_world.cpp stale_stack_leak.cpp
suppressions_default.cpp suppressions_file.cpp swapcontext.cpp thread_context_crash.cpp trampoline.mm use_after_return.cpp
use_globals_initialized.cpp use_globals_uninitialized.cpp use_registers.cpp use_registers_extra.cpp use_stacks.cpp
use_stacks_threaded.cpp use_tls_dynamic.cpp use_tls_pthread_specific_dynamic.cpp use_tls_pthread_specific_static.cpp
use_tls_static.cpp use_unaligned.cpp user_pointer.cpp
""".split()
# Those that have no case here.
LEFT_OUT = {
    "they test its interface, which test/e2e/heap/lsan_interface.py does too": [
        "disabler.c", "disabler.cpp", "disabler_in_tsd_destructor.c", "ignore_object.c", "lsan_annotations.cpp", "link_turned_off.cpp",
        "recoverable_leak_check.cpp", "register_root_region.cpp", "lsan_crash.cpp", "thread_context_crash.cpp",
        "realloc_failure_keeps_original.cpp", "suppressions_default.cpp"],
    "they test its options": ["default_options.cpp", "flag_retries.c", "flag_tries.c", "log-path_test.cpp", "print_threads.c",
                              "suppressions_file.cpp"],
    "wrong calls of free are no leaks": [
        "invalid_free.cpp", "double_free.cpp", *(f"double_free_{name}.cpp" for name in (
            "eviction", "fork", "hooks", "large", "max_entries", "realloc", "sized", "threaded"))],
    "they are of another system": ["dispatch_continuations.mm", "trampoline.mm"],
}


def names(source):
    return run([PROGRAMS / source.stem]).stdout.decode().split()


def row(name, theirs, mine):
    """A line of the table, and whether it is as it should be."""
    lost = None if theirs is None else only(theirs, LOST)
    is_same = lost == only(mine, LOST)
    why = "the same" if is_same else (OTHERWISE | BY_CHANCE).get(name, "DIFFERENT")
    found = "failed" if lost is None else as_text(totals(lost, LOST))
    return f"{name:34} {found:34} {as_text(totals(mine)):48} {why}", name in BY_CHANCE or is_same == (name not in OTHERWISE)


def compare(source, of):
    program, wrong = with_lsan(source, scratch("lsan")), []
    print(f"{'case':34} {'LeakSanitizer':34} {'torsh':48}")
    for name in of:
        text, is_right = row(name, of_lsan(source, [program, name, LIBRARY]),
                             ours(source, [PROGRAMS / source.stem, name, LIBRARY]))
        print(text)
        if not is_right:
            wrong.append(text)
    assert not wrong, "\n".join(wrong)
    print(f"note: {len(of)} cases of LeakSanitizer, {sum(name in OTHERWISE for name in of)} of them different with a reason")


# LeakSanitizer finds a pointer to one or two of these in what is left over of the threads. How many are lost.
OF_ENDED_THREADS = {"create_thread_leak_arg": 100, "create_thread_leak_retval": 100, "create_thread_leak_detached": 200}
# The program handles signals all the time.
IN_A_STORM = "signal_during_stop_the_world"


def blocks_are_lost_or_kept_as_leak_sanitizer_finds(source):
    compare(source, [name for name in names(source) if name not in (*OF_ENDED_THREADS, IN_A_STORM)])


for each in SOURCES:
    add_case(f"blocks_of_{each.stem}_are_lost_or_kept_as_leak_sanitizer_finds", blocks_are_lost_or_kept_as_leak_sanitizer_finds, each)


@case
def what_threads_that_have_ended_had_been_given_and_gave_is_lost():
    program = with_lsan(THREADS, scratch("lsan"))
    for name, n in OF_ENDED_THREADS.items():
        theirs, mine = (totals(lines)["lost"][0] for lines in (
            of_lsan(THREADS, [program, name]), ours(THREADS, [PROGRAMS / THREADS.stem, name])))
        print(f"{name}: of {n} blocks lost: LeakSanitizer {theirs}, torsh {mine}")
        assert 0.9 * n <= theirs <= n, theirs
        expect_equal(mine, n, f"lost blocks of {name}")


@case
def in_a_storm_of_signals_blocks_have_their_class():
    theirs = of_lsan(THREADS, [with_lsan(THREADS, scratch("lsan")), IN_A_STORM])
    report = report_of([PROGRAMS / THREADS.stem, IN_A_STORM])
    mine = totals(by_line(THREADS, report))
    print(f"{IN_A_STORM}: {report['reachability']}")
    expect_equal(as_text(totals(theirs)), "1 lost (1,337 B)", "what LeakSanitizer finds")
    if "can't be stopped: " in (report["reachability"]["reason"] or ""):
        raise Skip(f"ptrace is forbidden here: {report['reachability']['reason']}")
    expect_equal((report["reachability"]["judged"], mine), (True, totals(theirs)), "whether it was judged, and the classes")


@case
def every_file_of_its_tests_has_a_case_or_a_reason():
    """A file may have several cases, named after it."""
    left_out = [name for of in LEFT_OUT.values() for name in of]
    cases = [name for source in SOURCES for name in names(source)]
    has_case = [name for name in FILES if any(case.startswith(re.sub(r"\W", "_", name.split(".")[0])) for case in cases)]
    expect_equal(sorted(has_case + left_out), sorted(FILES), "files")
    for why, of in LEFT_OUT.items():
        print(f"{len(of)} files are left out: {why}")


main()

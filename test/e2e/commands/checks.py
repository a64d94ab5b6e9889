#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The checks of the build can fail: each is shown what it has to find."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

CHECKS = ROOT / "test/check"


def tree(files):
    folder = scratch("tree")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


WRONG_INCLUDES = (
    ("agent/wire/a.c", "agent/stack/stack.h"), ("agent/a.c", "collectors/heap.h"), ("agent/a.h", "tools/base/die.h"),
    ("shim/a.c", "agent/stack/stack.h"), ("shim/a.h", "collectors/heap.h"), ("collectors/a.c", "tools/base/die.h"),
    ("tools/store/a.c", "agent/ring.h"), ("tools/a.c", "shim/sys.h"), ("agent/a.c", "../shim/sys.h"), ("agent/a.def", "test/a.h"),
    ("tools/export/chrome/a.c", "tools/report/text.h"), ("tools/report/a.c", "tools/export/trace.h"),
    ("tools/writer/threads/a.c", "tools/command/command.h"), ("tools/export/a.c", "tools/writer/fold/heap_state.h"),
    ("tools/recording/a.c", "tools/symbols/symbols.h"), ("tools/memory/a.c", "tools/memory/leaks/leaks.h"),
    ("tools/writer/a.c", "tools/recording/recording.h"),
)


@case
def layering_finds_each_wrong_include():
    for name, included in WRONG_INCLUDES:
        result = run([CHECKS / "layering", tree({name: f'\n#  include "{included}"\n'})])
        expect_equal(result.returncode, 1, f"status for {name} including {included}")
        first = result.stdout.decode().splitlines()[0]
        assert first.startswith(f"{name}:2:") and included in first, first


@case
def layering_lets_right_includes_pass():
    right = {"collectors/a.c": '#include "agent/a.h"\n#include "shim/a.h"\n#include <stdio.h>\n#include "agent/wire/a.h"\n',
             "tools/b.c": '#include "tools/base/a.h"\n#include "tools/a.h"\n#include "recording.pb-c.h"\n', "shim/c.c": '#include "agent/wire/a.h"\n',
             "agent/d.c": '#include "shim/a.h"\n', "agent/wire/e.c": '#include "agent/wire/a.h"\n'}
    expect_equal(run([CHECKS / "layering", tree(right)]).returncode, 0, "status")


def layering_faults(files):
    result = run([CHECKS / "layering", tree(dict.fromkeys(files, ""))])
    return result.returncode, result.stdout.decode().splitlines()[:-1]


@case
def layering_finds_a_folder_of_too_many_files():
    full = [f"tools/base/{n}.c" for n in range(25)]
    expect_equal(layering_faults([*full, "tools/base/below/a.c"]), (0, []), "status and faults of a full folder")
    expect_equal(layering_faults([*full, "tools/base/README.md"]),
                 (1, ["tools/base: 26 files in one folder, 25 are the limit"]), "status and faults")
    scripts = [f"test/e2e/{n}.py" for n in range(26)]
    expect_equal(layering_faults([*full, *scripts, *(f"test/fuzz/corpus/codec/{n}" for n in range(26))]),
                 (1, ["test/e2e: 26 files in one folder, 25 are the limit"]), "status and faults of a folder of tests")


@case
def layering_finds_two_files_of_one_name():
    expect_equal(layering_faults(["agent/producer/channel.h", "agent/wire/channel.h", "agent/a.c", "agent/a.h"]), (0, []),
                 "status and faults of a pair that is declared")
    expect_equal(layering_faults(["agent/a.h", "tools/base/a.h"]), (1, ["a.h: the name of several files (agent/a.h, tools/base/a.h)"]),
                 "status and faults")


def faults_in_another_tree(check, *arguments):
    """What a check finds where nothing is that its tables name."""
    folder = tree({"agent/a.c": "", f"test/check/{check}": (CHECKS / check).read_text()})
    (folder / f"test/check/{check}").chmod(0o755)
    result = run([folder / f"test/check/{check}", *arguments])
    expect_equal(result.returncode, 1, "status")
    return result.stdout.decode()


@case
def names_that_are_gone_are_found():
    found = faults_in_another_tree("layering")
    for name in ("the folder tools/store", "the file tools/torsh.c"):
        assert f"has {name}, which is not there" in found, found
    objects = scratch("objects")
    (objects / "map").write_text(MAP)
    for source in ("a.c", "lib.so.c"):
        (objects / source).write_text(RIGHT_OBJECT + "\n")
    run(["gcc", "-fPIC", "-fstack-usage", "-c", "-o", objects / "a.o", objects / "a.c"])
    run(["gcc", "-shared", "-fPIC", "-o", objects / "lib.so", objects / "lib.so.c"])
    found = faults_in_another_tree("exports", objects / "lib.so", objects, objects / "map")
    for sentence in ("shim/libc/thread.c, which starts threads, is not there", "no function is called torsh_config_read"):
        assert sentence in found, found
    result = check_calls({name: text for name, text in RIGHT_CALLS.items() if name != "agent/send.c"}
                         | {"collectors/callbacks.c": "int other_table;"})
    assert b"no object defines torsh_callbacks" in result.stderr, result


DEFAULT = "__attribute__((visibility(\"default\"))) "
# What is wrong, and the only faults that may be named for it.
WRONG_OBJECTS = {
    "exports a name that is not listed": (DEFAULT + "int surplus(void) { return 1; }", "surplus is exported but not listed"),
    "exports an unwinder": (DEFAULT + "int _Unwind_Backtrace(void) { return 1; }", "_Unwind_Backtrace is exported but not listed",
                            "_Unwind_Backtrace is exported: the target's exceptions"),
    "uses malloc": ("#include <stdlib.h>\nvoid *use_malloc(void) { return malloc(1); }", "lib.so uses malloc", "a.o uses malloc"),
    "prints": ("#include <stdio.h>\nvoid use_printf(int n) { printf(\"%d\", n); }", "a.o uses printf"),
    "ends the process": ("#include <stdlib.h>\nvoid use_abort(void) { abort(); }", "a.o uses abort"),
    "has TLS that may allocate": ("extern __thread int other; int use_tls(void) { return other++; } " + DEFAULT + "__thread int other;",
                                  "other is exported but not listed", "lib.so uses __tls_get_addr", "a.o uses __tls_get_addr"),
    "has a frame of more than 640 bytes":
        ("void fill(volatile char *); void fill(volatile char *p) { *p = 0; } int big(void) { volatile char a[700]; fill(a); return a[0]; }",
         "big takes"),
}
RIGHT_OBJECT = DEFAULT + "int listed(void) { return 1; }"
MAP = "{ global: listed; local: *; };\n"


def check_exports(source, map_text=MAP, *link, frames=("-fstack-usage",)):
    folder = scratch("exports")
    (folder / "a.c").write_text(source + "\n" + RIGHT_OBJECT + "\n")
    (folder / "map").write_text(map_text)
    (folder / "objects").mkdir()
    compiled = run(["gcc", "-fPIC", "-fvisibility=hidden", "-fno-stack-protector", *frames, "-c", "-o", folder / "objects/a.o", folder / "a.c"])
    linked = run(["gcc", "-shared", "-o", folder / "lib.so", folder / "objects/a.o", *link])
    expect_equal((compiled.returncode, linked.returncode), (0, 0), "status of the compiler")
    return run([CHECKS / "exports", folder / "lib.so", folder / "objects", folder / "map"])


LINT_LICENCE = "/* SPDX-License-Identifier: Apache-2.0 OR MIT */\n"
LONG_BODY = "void f(void)\n{\n" + "\t;\n" * 56 + "}\n"


def lint_errors(text):
    """The errors that lint prints of a source file; status 1 where there is one."""
    folder = tree({"agent/a.c": LINT_LICENCE + text})
    result = run([CHECKS / "lint", folder])
    errors = [line for line in result.stdout.decode().splitlines() if line.startswith("error: ")]
    expect_equal(result.returncode, int(bool(errors)), f"status ({result.stdout.decode()}{result.stderr.decode()})")
    return errors


@case
def lint_finds_long_lines_and_functions():
    expect_equal(lint_errors("\n/* " + "x" * 94 + " */\nstatic const char *const s = \"" + "x" * 100 + "\";\n"), [], "errors")
    expect_equal(lint_errors("\n/* " + "x" * 95 + " */\n"), ["error: agent/a.c:3: 101 columns, 100 are the limit"], "errors")
    expect_equal(lint_errors("\n" + "\t" * 12 + "/**/;\n"), ["error: agent/a.c:3: 101 columns, 100 are the limit"], "errors")
    expect_equal(lint_errors(LONG_BODY), ["error: agent/a.c: 56 lines, 55 are the limit: void f(void)"], "errors")
    expect_equal(lint_errors(LONG_BODY.replace("\t;\n", "", 1)), [], "errors")


@case
def lint_finds_a_missing_licence():
    folder = tree({"agent/a.c": "int a;\n"})
    assert "error: agent/a.c: not one SPDX line" in run([CHECKS / "lint", folder]).stdout.decode()


def expect_faults(result, *sentences):
    """The check fails, and these are all that it finds."""
    found = [line for line in result.stdout.decode().splitlines() if "names exported" not in line]
    expect_equal(result.returncode, 1, f"status ({found})")
    for sentence in sentences:
        assert any(sentence in line for line in found), f"{found} don't contain {sentence}"
    expect_equal(len(found), len(sentences), f"faults ({found})")


@case
def exports_finds_each_fault():
    for source, *sentences in WRONG_OBJECTS.values():
        expect_faults(check_exports(source), *sentences)


@case
def exports_needs_the_sizes_of_frames():
    expect_faults(check_exports("", frames=()), "-fstack-usage")


@case
def exports_finds_a_missing_name_and_a_needed_library():
    expect_faults(check_exports("", "{ global: listed; missing; local: *; };\n"), "missing is listed in")
    expect_faults(check_exports("", MAP, "-Wl,--no-as-needed", "-lz"), "libz.so.1 is needed")


@case
def exports_lets_a_right_library_pass():
    result = check_exports("")
    expect_equal(result.returncode, 0, f"status ({result.stdout.decode()})")

# What calls what, all of it downwards, but for the table.
RIGHT_CALLS = {
    "shim/libc/heap.c": "int record(void), next(void); int wrapper(void) { return next() + record(); }",
    "shim/libc/next.c": "int next(void) { return 1; }",
    "collectors/heap.c": "int send(void); int record(void) { return send(); }",
    "collectors/callbacks.c": "int wrapper(void), begin(void); int (*const torsh_callbacks[])(void) = {wrapper, begin};",
    "agent/send.c": "int next(void), pack(void); extern int (*const torsh_callbacks[])(void); "
                    "int send(void) { return next() + pack() + torsh_callbacks[0](); }",
    "agent/agent.c": "int send(void); int begin(void) { return send(); }",
    "agent/wire/codec.c": "int pack(void) { return 1; }",
}
# The files that are otherwise, and what is found.
WRONG_CALLS = (
    ({"agent/agent.c": "int record(void); int begin(void) { return record(); }"}, "agent/agent (agent) calls up to collectors/heap"),
    ({"agent/agent.c": "int wrapper(void); int begin(void) { return wrapper(); }"}, "agent/agent (agent) calls up to shim/libc/heap (wrappers): wrapper"),
    ({"collectors/other.c": "int wrapper(void); int other(void) { return wrapper(); }"}, "collectors/other (collectors) calls up to shim/libc/heap"),
    ({"shim/libc/next.c": "int record(void); int next(void) { return record(); }"}, "agent/send (agent) calls up to shim/libc/next (wrappers)"),
    ({"agent/wire/codec.c": "int next(void); int pack(void) { return next(); }"}, "agent/wire/codec (wire) calls up to shim/libc/next"),
    ({"agent/agent.c": "int record; int begin(void) { return 1; }", "collectors/heap.c": "int begin(void); int record_it(void) { return begin(); }",
      "agent/other.c": "int record_it(void); int (*const hidden)(void) = record_it;"}, "agent/other (agent) calls up to collectors/heap"),
    ({"agent/one.c": "int two(void); int one(void) { return two(); }", "agent/two.c": "int one(void); int two(void) { return one(); }"},
     "2 files call each other in a circle: agent/one, agent/two"),
)


def check_calls(files):
    folder = tree(files)
    for name in files:
        (folder / "objects" / name).parent.mkdir(parents=True, exist_ok=True)
        compiled = run(["gcc", "-w", "-c", "-o", (folder / "objects" / name).with_suffix(".o"), folder / name])
        expect_equal(compiled.returncode, 0, f"status of the compiler for {name}")
    return run([CHECKS / "calls", folder / "objects"])


@case
def calls_finds_each_call_that_goes_up_and_each_circle():
    for files, fault in WRONG_CALLS:
        result = check_calls(RIGHT_CALLS | files)
        expect_equal(result.returncode, 1, f"status for {files}")
        found = result.stdout.decode()
        assert any(line.startswith(fault) for line in found.splitlines()), f"{found} doesn't have: {fault}"


@case
def calls_lets_right_calls_pass():
    result = check_calls(RIGHT_CALLS)
    expect_equal(result.returncode, 0, f"status ({result.stdout.decode()})")


main()

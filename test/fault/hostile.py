#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hostile recordings: some KB that require gigabytes of tables, stacks of endless depth, paths of
pipes, texts that other programs would execute. Every reader returns, within bounds, and nothing
else happens."""

import csv
import json
import os
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

HOSTILE = BUILD / "test/hostile"
MEMORY_BYTES, CPU_S = 1 << 30, 10
READERS = (("leaks",), ("report",), ("peak",), ("regions",), ("ops",), ("steps",), ("kernels",), ("check", "--max-leak", "1"),
           ("tensors",), ("modules",), ("dump",), ("whatif", "--batch", "2x", "--allocator", "expandable_segments"), ("whatif",), ("rss",),
           ("ranks",),
           *(("export", "--format", name) for name in ("pprof", "speedscope", "folded", "profile", "chrome", "perfetto", "csv",
                                                          "tensorboard", "sqlite", "json", "memory", "part", "manifest", "corr", "html")))


def written(kind, *arguments):
    path = scratch("recording") / f"{kind}.torsh"
    expect_equal(run([HOSTILE, path, kind, *arguments]).returncode, 0, f"status of hostile {kind}")
    return path


def bound():
    # Of the processor's time: how long it takes depends on what else runs. Address space may be more than what is used of it.
    resource.setrlimit(resource.RLIMIT_AS, (8 * MEMORY_BYTES, 8 * MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


def read_within_bounds(kind):
    recording, output = written(kind), scratch("read")
    for command, *arguments in READERS:
        target = ["-o", output / arguments[1]] if command == "export" else []
        result = run([TORSH, command, recording, *arguments, *target], preexec_fn=bound)
        # Of signals, or without memory, it would be something else.
        assert result.returncode in (0, 1, 2), f"{command} {arguments}: {result.returncode} {result.stderr[-300:]}"
        n_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        assert n_bytes < MEMORY_BYTES, f"{command} {arguments} or one before it took {n_bytes >> 20} MiB"


for _kind in run([HOSTILE]).stdout.decode().split():
    add_case(f"{_kind}_are_read_within_bounds", read_within_bounds, _kind)


@case
def modules_that_are_pipes_are_not_waited_for():
    folder = scratch("modules")
    for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir), ("device", lambda path: path.symlink_to("/dev/tty"))):
        make(folder / name)
        recording = written("texts", folder / name)
        for command in ("leaks", "report"):
            result = run([TORSH, command, recording, "--json"])
            assert result.returncode in (0, 1), (name, command, result.stderr)
        leak, = leaks(recording)["leaks"]
        expect_equal((leak["bytes"], leak["stack"][0]["file"]), (100, None), f"the leak through a {name}")


def module_naming(folder, kind):
    """A module with a function at 0x1000, and the file that it names for its lines: that by a debug link, by another, by a unit."""
    source, module, named = folder / "a.c", folder / "a.so", folder / ("a.dwo" if kind == "unit" else "named.debug")
    source.write_text('int f(int n)\n{\n\t__asm__(".skip 512");\n\treturn n + 1;\n}\n')
    flags = ["-gsplit-dwarf"] if kind == "unit" else []
    link = ["-shared", "-nostdlib", "-Wl,-Ttext=0xf00", "-Wl,--build-id=none"]
    for command in (["gcc", "-g", *flags, "-fPIC", "-c", source, "-o", folder / "a.o"],
                    ["gcc", *link, folder / "a.o", "-o", module]):
        expect_equal(run(command, cwd=folder).returncode, 0, f"status of {command}")
    named.write_bytes(b"named.debug\0" + bytes(20))
    link = {"link": ["--strip-debug", f"--add-gnu-debuglink={named}"],
            "other link": ["--add-section", f".gnu_debugaltlink={named}"], "unit": []}[kind]
    if link:
        expect_equal(run(["objcopy", *link, module]).returncode, 0, f"status of objcopy for a {kind}")
    named.unlink()
    return module, named


@case
def pipes_that_modules_name_are_not_waited_for():
    for kind in ("link", "other link", "unit"):
        module, named = module_naming(scratch(kind.replace(" ", "_")), kind)
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            make(named)
            leak, = json.loads(run([TORSH, "leaks", written("texts", module), "--json"]).stdout)["leaks"]
            expect_equal(leak["stack"][0]["function"], "f", f"the function of a module with a {kind}")
            named.unlink()


@case
def recordings_that_are_pipes_are_refused():
    folder = scratch("recordings")
    os.mkfifo(folder / "a.torsh")
    for path in (folder, folder / "a.torsh"):
        expect_equal(run([TORSH, "leaks", path]).returncode, 2, f"status for {path.name}")


@case
def the_name_of_a_host_is_no_path():
    folder = scratch("board")
    recording = written("texts", "../../elsewhere/name")
    torsh("export", recording, "--format", "tensorboard", "-o", folder / "board")
    files = [path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()]
    expect_equal(set(files), {"board"}, "where files were written")


@case
def cells_are_no_formulas():
    path = scratch("cells") / "t.csv"
    torsh("export", written("texts", "x"), "--format", "csv", "-o", path)
    with path.open() as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "'=HYPERLINK(\"http://x\")" in cells, cells
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")], cells


main()

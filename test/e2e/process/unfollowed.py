#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that cannot be followed are listed with the reason, and without values that were not
measured."""

import os
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from family import START, Truth, complete, expect_members, images, kept  # noqa: E402

SOURCES = ROOT / "test/programs/process"
STATUS = 7
NOBODY = 65534


def build(name, *flags):
    program = scratch("programs") / f"{name}_unfollowed"
    result = run(["gcc", "-g", "-D_GNU_SOURCE", "-pthread", *flags, "-o", program, SOURCES / f"{name}.c"])
    if result.returncode:
        missing(f"can't be built with {' '.join(flags)}: {result.stderr.decode()[:200]}")
    return program


def unfollowed(report):
    return [process for process in report["processes"] if not process["followed"]]


def expect_nothing_measured(process):
    for name, value in process.items():
        if name.endswith(("_bytes", "_blocks")) or name in ("rank", "inherited", "allocator"):
            expect_equal(value, None, f"{name} of what was not followed")


def start(way, program, truth, *arguments):
    """The program, started in a way: the report, and its only row that was not followed."""
    command = [START, way, program, *(arguments or (truth.path, 50, STATUS))]
    bare_truth = truth and Truth(scratch("bare"))
    bare = run([bare_truth.path if truth and part == truth.path else part for part in command])
    result, output = record(command)
    expect_equal((result.returncode, result.stderr), (bare.returncode, bare.stderr), "status and stderr")
    report = complete(output)
    found = unfollowed(report)
    expect_equal(len(found), 1, f"programs that were not followed, of {report['processes']}")
    expect_nothing_measured(found[0])
    return report, found[0], output


def static_started(way, is_exact):
    program, truth = build("member", "-static"), Truth(scratch("truth"))
    report, row, output = start(way, program, truth)
    member, starter = truth.members()[-1], report["processes"][0]
    is_image = member.pid == starter["pid"]
    expect_equal((row["pid"], row["ppid"], row["program"]),
                 (member.pid, starter["ppid"] if is_image else starter["pid"], str(program)), "its identity")
    expect_equal(row["arguments"], [str(program), str(truth.path), "50", str(STATUS)], "its arguments")
    assert row["reason"].startswith("it is statically linked"), row["reason"]
    assert is_exact or row["end"] == "vanished" or row["end_ns"], row
    if is_exact or row["end_ns"] is not None:
        expect_equal(row["end"], f"exit {STATUS}", "its end")
        assert row["start_ns"] <= row["end_ns"], row
    assert starter["start_ns"] <= row["start_ns"], row
    for command in (("leaks", "--verbose"), ("report",), ("report", "--tree")):
        text = torsh(command[0], output, *command[1:])
        line = next((line for line in text.splitlines() if f"pid {row['pid']})" in line and "not followed" in line), "")
        assert "it is statically linked" in line and program.name in line, f"{command}: {text}"
    expect_equal(unfollowed(read_report("report", output)), unfollowed(report) and [
        {**row, "peak_bytes": None, "rss_peak_bytes": None, "python_gc": None}], "the row of report")
    torsh("leaks", output, "--pid", row["pid"], expect=0 if len(images(report, row["pid"])) > 1 else 2)


# A process that executes it itself is watched until its end; one that had ended when the writer
# received the event has no known end.
for exact_way in ("exec", "fork", "clone"):
    add_case(f"a_static_program_by_{exact_way}", static_started, exact_way, True)
for other_way in ("vfork", "spawn", "spawnp", "clone_of_memory"):
    add_case(f"a_static_program_by_{other_way}", static_started, other_way, False)


@case
def arguments_that_are_cut_are_seen_to_be():
    program, truth = build("member", "-static"), Truth(scratch("truth"))
    wanted = [str(program), str(truth.path), "50", str(STATUS)]
    _, row, _ = start("fork", program, truth, truth.path, 50, STATUS, "x" * 150, "y" * 300, "z")
    expect_equal(row["arguments"], [*wanted, "x" * 150, "..."], "its arguments")


@case
@waits
def a_static_program_is_watched_until_it_is_killed():
    program, truth = build("member", "-static"), Truth(scratch("truth"))
    for way in ("vfork", "spawn", "fork"):
        output = scratch(way)
        with started([START, way, program, truth.path, 60, "wait"], agent_environment(output)) as starter:
            def running():
                return recordings(output) and run([TORSH, "leaks", output, "--json"]).returncode == 0 and [
                    row for row in unfollowed(leaks(output)) if row["end"] == "running" and row["end_ns"] is None]
            row = wait_until(running, "a row of a program that runs")[0]
            expect_equal(row["pid"], truth.members()[-1].pid if way != "fork" else row["pid"], "its pid")
            os.kill(row["pid"], 9)
            expect_equal(starter.wait(), 128 + 9, "status of the starter")
        report = complete(output)
        row = unfollowed(report)[0]
        expect_equal(row["end"], "signal 9", f"its end by {way}")
        assert row["start_ns"] < row["end_ns"], row


@case
def what_a_static_program_starts_is_followed():
    """It becomes another program, which can be followed again: all of one session."""
    program = build("start", "-static")
    for way in ("fork", "spawn"):
        truth = Truth(scratch("truth"))
        report, row, output = start(way, program, truth, "exec", *truth.member(70, STATUS))
        expect_members(report, truth)
        member = truth.members()[-1]
        expect_equal((row["pid"], row["end"]), (member.pid, "exec") if row["end_ns"] else (member.pid, "vanished"),
                     f"what was not followed, by {way}")
        lines = torsh("report", output, "--tree").splitlines()
        depths = {line.lstrip("│├└─ ").split()[0]: len(line) - len(line.lstrip("│├└─ ")) for line in lines}
        if row["end_ns"]:
            assert depths[program.name] < depths["member"], "\n".join(lines)


@case
def a_script_is_listed_with_its_interpreter():
    interpreter, truth = build("member", "-static"), Truth(scratch("truth"))
    script = scratch("script") / "script"
    script.write_text(f"#!{interpreter} {truth.path}\nnot read\n")
    script.chmod(0o755)
    _, row, _ = start("fork", script, None, STATUS)
    expect_equal((row["program"], row["end"]), (str(script), f"exit {STATUS}"), "its path and end")
    assert row["reason"].startswith(f"its interpreter {interpreter} is statically linked"), row["reason"]


@case
def a_setuid_program_is_listed():
    need_root()
    program, truth = build("member"), Truth(scratch("truth"))
    os.chown(program, NOBODY, NOBODY)
    program.chmod(0o4755)
    for folder in (program.parent, truth.path.parent):
        if not os.stat(folder).st_mode & 1:
            raise Skip("others may not enter the folder of the tests")
    _, row, _ = start("fork", program, truth, truth.path, 50, STATUS)
    assert row["reason"].startswith("it gains privileges"), row["reason"]


@case
def a_setuid_bit_without_effect_does_not_count():
    need_root()
    need_command("setpriv")
    program, truth = build("member"), Truth(scratch("truth"))
    os.chown(program, NOBODY, NOBODY)
    program.chmod(0o4755)
    result, output = record(["setpriv", "--no-new-privs", START, "fork", program, truth.path, 50, STATUS])
    expect_equal(result.returncode, STATUS, "status")
    report = complete(output)
    expect_equal(unfollowed(report), [], "programs that were not followed")
    expect_equal(images(report, truth.members()[0].pid)[-1]["program"], str(program), "program")


@case
def a_program_with_capabilities_is_listed():
    need_root()
    need_command("setcap")
    need_command("setpriv")
    program, truth = build("member"), Truth(scratch("truth"))
    if run(["setcap", "cap_net_raw+ep", program]).returncode:
        raise Skip("this file system keeps no capabilities")
    output = scratch("as_nobody")
    output.chmod(0o777)
    nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    if run([*nobody, "test", "-x", program, "-a", "-w", output]).returncode:
        raise Skip("another user may not enter the folder of the tests")
    result, output = record([*nobody, START, "fork", program, truth.path, 50, STATUS], output)
    expect_equal(result.returncode, STATUS, f"status ({result.stderr.decode()})")
    # setpriv, as root, has a session of its own that begins and ends at about the same time.
    (path,) = wait_until(lambda: [path for path in recordings(output) if path.name.startswith(START.name)], "a recording")
    row = unfollowed(complete(path))[0]
    assert row["reason"].startswith("it gains privileges"), row["reason"]


def i386_program(path, status):
    """An ELF file of 32 bits that calls exit(status)."""
    code = b"\xb8\x01\x00\x00\x00\xbb" + struct.pack("<I", status) + b"\xcd\x80"
    base, headers = 0x8048000, 52 + 32
    header = struct.pack("<4s5B7xHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 0, 0, 2, 3, 1, base + headers, 52, 0, 0, 52, 32, 1,
                         0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, headers + len(code), headers + len(code), 5, 4096)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)


@case
def a_foreign_program_is_listed():
    program = scratch("foreign") / "foreign"
    i386_program(program, STATUS)
    if run([program]).returncode != STATUS:
        raise Skip("this kernel doesn't run programs of 32 bits")
    _, row, _ = start("fork", program, None, "anything")
    expect_equal((row["reason"], row["end"]), ("it is of another architecture than the agent", f"exit {STATUS}"),
                 "reason and end")


# What it was given to preload: nothing of ours, and what somebody else wants preloaded.
MUSL = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	const char *preload = getenv("LD_PRELOAD"), *cuda = getenv("CUDA_INJECTION64_PATH");

	fprintf(stderr, "%s %s\n", preload ? preload : "none", cuda ? cuda : "none");
	return argc > 1 ? atoi(argv[1]) : 1;
}
"""


def musl_program():
    compiler, folder = need_command("musl-gcc"), scratch("musl")
    (folder / "musl.c").write_text(MUSL)
    result = run([compiler, "-o", folder / "musl", folder / "musl.c"])
    expect_equal(result.returncode, 0, f"status of musl-gcc ({result.stderr.decode()})")
    return folder / "musl"


def musl_started(way):
    program = musl_program()
    _, row, _ = start(way, program, None, STATUS)
    assert row["reason"].startswith("it runs on another C library"), row["reason"]
    expect_equal(row["program"], str(program), "program")


for way in ("exec", "fork", "vfork", "spawn", "spawnp", "clone", "clone_of_memory"):
    add_case(f"a_program_of_another_c_library_by_{way}", musl_started, way)


def sanitized_program(kind):
    """Of GCC, whose runtimes end a program in which another library is loaded before them."""
    compiler, folder = need_command("gcc"), scratch(f"sanitized_{kind}")
    (folder / "member.c").write_text("#include <stdlib.h>\nint main(int argc, char **argv) { return argc > 1 ? atoi(argv[1]) : 1; }\n")
    result = run([compiler, f"-fsanitize={kind}", "-o", folder / kind, folder / "member.c"])
    if result.returncode:
        raise Skip(f"gcc has no {kind} sanitizer here")
    return folder / kind


def sanitized_started(kind):
    program = sanitized_program(kind)
    _, row, _ = start("fork", program, None, STATUS)
    assert row["reason"].startswith("it is built with a sanitizer"), row["reason"]
    expect_equal(row["end"], f"exit {STATUS}", "end, as without the agent")


for _kind in ("address", "thread", "leak"):
    add_case(f"a_program_with_the_{_kind}_sanitizer_runs_as_without", sanitized_started, _kind)


@case
def a_script_of_another_c_library_is_listed():
    program, script = musl_program(), scratch("script") / "script"
    script.write_text(f"#!{program} {STATUS}\nnot read\n")
    script.chmod(0o755)
    _, row, _ = start("fork", script, None, "anything")
    assert row["reason"].startswith(f"its interpreter {program} runs on another C library"), row["reason"]


@case
def a_script_is_followed_through_as_many_lines_as_the_kernel_does():
    program, folder = musl_program(), scratch("script")
    for depth in range(1, 6):
        interpreter = program if depth == 1 else folder / f"script{depth - 1}"
        script = folder / f"script{depth}"
        # Each is handed the path of the script before it; the last one gets the status behind these.
        script.write_text(f"#!{interpreter}\nnot read\n")
        script.chmod(0o755)
    if run([script]).returncode == 126:
        raise Skip("this kernel follows fewer #! lines")
    _, row, _ = start("fork", script, None, "anything")
    assert row["reason"].startswith(f"its interpreter {program} runs on another C library"), row["reason"]


@case
def a_static_program_of_another_c_library_is_listed():
    compiler, folder = need_command("musl-gcc"), scratch("musl")
    (folder / "musl.c").write_text(MUSL)
    result = run([compiler, "-static", "-o", folder / "musl", folder / "musl.c"])
    expect_equal(result.returncode, 0, f"status of musl-gcc ({result.stderr.decode()})")
    result, output = record([START, "fork", folder / "musl", STATUS])
    expect_equal(result.returncode, STATUS, f"status ({result.stderr.decode()})")
    (row,) = unfollowed(complete(output))
    assert row["reason"].startswith("it is statically linked"), row["reason"]


@case
def a_loader_of_another_c_library_run_as_a_command_is_listed():
    program, loader = musl_program(), pathlib.Path("/lib/ld-musl-x86_64.so.1")
    if not loader.exists():
        raise Skip(f"there is no {loader} here")
    _, row, _ = start("fork", loader, None, program, STATUS)
    assert row["reason"].startswith("it runs on another C library"), row["reason"]


@case
def a_loader_run_as_a_command_is_followed():
    loader, truth = pathlib.Path("/lib64/ld-linux-x86-64.so.2"), Truth(scratch("truth"))
    if not loader.exists():
        raise Skip(f"there is no {loader} here")
    result, output = record([START, "fork", loader, *truth.member(70, STATUS)])
    expect_equal(result.returncode, STATUS, f"status ({result.stderr.decode()})")
    report = complete(output)
    expect_equal(unfollowed(report), [], "programs that were not followed")
    # The process is the program, not its loader, so that what it leaks isn't taken for the loader's own.
    expect_equal(kept(report, "keep_in_member"), [(member.pid, member.size) for member in truth.members()], "what leaked")
    expect_equal(report["processes"][-1]["program"], str(truth.member(70, STATUS)[0]), "program")


OTHER_EFFECTIVE_USER = """
import os, sys
if os.fork() == 0:
    os.seteuid(%d)
    os.execv(sys.argv[1], sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
""" % NOBODY


@case
def who_has_another_effective_user_starts_nothing_that_is_followed():
    """The kernel checks the real user: it sets AT_SECURE for any program."""
    need_root()
    result, output = record([sys.executable, "-c", OTHER_EFFECTIVE_USER, "/bin/true"])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    (row,) = unfollowed(complete(output))
    # Ubuntu's is a link to a file of another name.
    expect_equal(os.path.realpath(row["program"]), os.path.realpath("/bin/true"), "program")
    assert row["reason"].startswith("it gains privileges"), row


@case
def torsh_run_refuses_what_the_agent_would_list():
    """Both run the same code, so one program of each kind is enough."""
    folder = scratch("refused")
    fifo, script, setuid = folder / "fifo", folder / "script", folder / "setuid"
    shutil.copy(build("member"), setuid)
    os.mkfifo(fifo, 0o755)
    i386_program(folder / "foreign", STATUS)
    script.write_text(f"#!{folder / 'foreign'}\n")
    script.chmod(0o755)
    refused = {folder / "foreign": "another kind of machine", script: f"{folder / 'foreign'} is made for another kind of machine",
               fifo: "can't be read", build("start", "-static"): "linked statically",
               sanitized_program("address"): "with a sanitizer"}
    if shutil.which("musl-gcc"):
        refused[musl_program()] = "another C library"
    if not os.geteuid():
        refused[setuid] = "setuid"
        os.chown(setuid, NOBODY, NOBODY)
        setuid.chmod(0o4755)
    for program, why in refused.items():
        result = run([TORSH, "run", "--agent", AGENT, "-o", folder / "out", "--", program, STATUS])
        expect_equal(result.returncode, 2, f"status of {program} ({result.stderr.decode()})")
        assert why.encode() in result.stderr and result.stderr.count(b"\n") == 1, f"{program}: {result.stderr.decode()}"
    assert not (folder / "out").exists(), "something was recorded"
    if not os.geteuid() and shutil.which("setpriv"):
        result = run(["setpriv", "--no-new-privs", TORSH, "run", "--agent", AGENT, "-o", folder / "out", "--", setuid,
                      Truth(scratch("truth")).path, 50, STATUS])
        expect_equal(result.returncode, STATUS, f"where the bit has no effect ({result.stderr.decode()})")


@case
def a_program_of_another_c_library_below_a_shell_and_env():
    program, folder = musl_program(), scratch("script")
    script = folder / "script"
    script.write_text("#!/usr/bin/env musl\n")
    script.chmod(0o755)
    command = ["/bin/sh", "-c", f"PATH={program.parent}:$PATH {script}; {program} {STATUS}"]
    bare = run(command)
    result, output = record(command)
    expect_equal((result.returncode, result.stderr), (bare.returncode, bare.stderr), "status and stderr")
    expect_equal([row["program"] for row in unfollowed(complete(output))], [str(program)] * 2, "what was not followed")


@case
def a_root_directory_without_the_agent_does_no_harm():
    need_root()
    need_command("chroot")
    root = scratch("root")
    for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        if not os.path.exists(path):
            raise Skip(f"there is no {path} here")
        (root / path[1:]).parent.mkdir(parents=True)
        shutil.copy(path, root / path[1:])
    shutil.copy("/bin/true", root / "true")
    bare = run(["chroot", root, "/true"])
    expect_equal((bare.returncode, bare.stderr), (0, b""), "without the agent")
    result, output = record(["chroot", root, "/true"])
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    row = unfollowed(complete(output))[0]
    assert row["reason"].startswith("it can't load the agent"), row["reason"]


@case
def a_foreign_program_that_does_not_start_is_not_listed():
    program = scratch("foreign") / "foreign"
    # Of an architecture that no machine has.
    i386_program(program, STATUS)
    data = bytearray(program.read_bytes())
    data[18:20] = struct.pack("<H", 0x1234)
    program.write_bytes(data)
    for way, images_there in (("fork", 2), ("vfork", 1)):
        result, output = record([START, way, program, "anything"], scratch(way))
        expect_equal(result.returncode, 95, f"status by {way}")
        report = complete(output)
        expect_equal(unfollowed(report), [], f"programs that were not followed, by {way}")
        expect_equal(len(report["processes"]), images_there, "processes")


main()

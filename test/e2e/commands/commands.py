#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The torsh command: its options, its exit status, and its exports."""

import collections
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import made  # noqa: E402

COMMANDS = ("run", "report", "open", "brief", "validate", "leaks", "peak", "rss", "ops", "blas", "requests", "steps", "cpu", "modules", "kernels", "tensors", "whatif", "regions",
            "dump", "diff", "workloads", "check", "ranks", "fold", "merge", "merge-trace", "export", "html", "serve", "mcp", "list", "top",
            "snapshot", "keep", "pause", "stop", "resume", "end")


def recorded(name="entries", **env):
    result, output = record([PROGRAMS / name], env=env)
    expect_equal(result.returncode, 0, "status")
    return output


def own(report):
    return entries_through(report["leaks"], "main")


@case
def every_command_explains_itself():
    for command in COMMANDS:
        text = torsh(command, "--help")
        assert len(text) > 200 and "Usage" in text, f"torsh {command} --help: {text!r}"
    torsh("--help")
    torsh("--version")


@case
def wrong_usage_is_status_2():
    output = recorded()
    for printed, *arguments in (("which recording?", "leaks"), ("'--no-such-option'", "leaks", "--no-such-option", output),
                             ('"nonsense"', "nonsense"), ("/nonexistent: No such file", "leaks", "/nonexistent"),
                             ("not a recording", "leaks", __file__), ("has no recording", "peak", scratch("empty")),
                             ('not "rumour"', "regions", output, "--source", "rumour"),
                             ('not "many"', "leaks", output, "--limit", "many")):
        result = run([TORSH, *arguments])
        expect_equal(result.returncode, 2, f"status of torsh {' '.join(map(str, arguments))} ({result.stderr!r})")
        assert printed.encode() in result.stderr.splitlines()[0], f"{printed} isn't printed: {result.stderr!r}"


def named(pattern, text):
    return set(re.findall(pattern, text))


def manual(page):
    """A page as it is installed, without the marks of fonts."""
    text = (ROOT / os.environ.get("BUILD", "build") / "man" / page).read_text()
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-")


@case
def the_manual_names_every_variable_option_and_command():
    listed = named(r"(?m)^  torsh ([a-z-]+) ", torsh("--help").split("Start with:")[0])
    expect_equal(set(COMMANDS) ^ listed, set(), "commands that only this test or only torsh --help has")
    expect_equal(listed - named(r"(?m)^\.BR torsh-([a-z-]+) \(1\)", manual("torsh.1")), set(), "commands that torsh.1 lacks")
    expect_equal(listed - named(r"(?m)^\| `torsh ([a-z-]+)", (ROOT / "README.md").read_text()), set(), "commands that README.md lacks")
    size = (ROOT / "README.md").stat().st_size
    assert size <= 8192, f"README.md has {size} bytes"
    for command in COMMANDS:
        options = named(r"(?<![\w-])(--[a-z][a-z-]*[a-z])", torsh(command, "--help"))
        explained = named(r"(?m)^(?:-\S, )?(--[a-z][a-z-]*[a-z])(?:=\S+)?$", manual(f"torsh-{command}.1"))
        expect_equal(options - explained, set(), f"options that torsh-{command}.1 lacks")


@case
def the_manual_explains_every_variable_and_format():
    for page, table, kind, heading in (("torsh-variables.7", "agent/process/variables.def", "VARIABLE", "TORSH_PROFILER_"),
                                       ("torsh-formats.5", "agent/wire/formats.def", "FORMAT", "")):
        names = named(rf"(?m)^{kind}\(\s*(\w+)", (ROOT / table).read_text()) - {"SESSION"}  # the agent's own
        assert len(names) > 10, names
        # A heading, the line from the table, and an explanation of its own.
        explained = named(rf"(?m)^\.TP\n\.B {heading}(\w+)\n.*\n\.br\n(?!\.TP|\.S[HS])", manual(page))
        expect_equal(names - explained, set(), f"entries of {table} that {page} lacks")


@case
def completions_have_every_command_and_option():
    folder = ROOT / os.environ.get("BUILD", "build") / "completions"
    for command in COMMANDS:
        for option in named(r"(?<![\w-])--([a-z][a-z-]*[a-z])", torsh(command, "--help").split("\n\n")[1]):
            for shell, form in (("bash", rf"(?m)^\t{command}\) .*--{option}[= ']"), ("fish", rf"from {command}' -l {option} "),
                                ("zsh", rf"(?s)\t{command}\)(?:(?!;;).)*'--{option}[=\[]")):
                assert re.search(form, (folder / shell).read_text()), f"{shell}: torsh {command} --{option}"


@case
def the_manual_and_the_completions_are_clean():
    checked = run([ROOT / "tools/man/generate/check", *(ROOT / os.environ.get("BUILD", "build") / name for name in ("man", "completions"))])
    if checked.returncode == 77:
        raise Skip(checked.stdout.decode())
    expect_equal((checked.returncode, checked.stderr), (0, b""), checked.stdout.decode())


@case
def bash_completes_commands_options_and_formats():
    script = ROOT / os.environ.get("BUILD", "build") / "completions/bash"
    for words, expected in ((["torsh", "lea"], "leaks"), (["torsh", "leaks", "--gr"], "--growth"),
                            (["torsh", "export", "--format", "=", "perf"], "perfetto"), (["torsh", "run", "--", "bas"], "bash")):
        line = " ".join(f"'{word}'" for word in words)
        result = run(["bash", "-c", f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _torsh; "
                                    'printf "%s\\n" "${COMPREPLY[@]}"'])
        assert expected in result.stdout.decode().split(), f"{line}: {result.stdout} {result.stderr}"


@case
def limit_sort_and_min_bytes_choose():
    output = recorded()
    everything = leaks(output)
    sizes = [entry["bytes"] for entry in everything["leaks"]]
    expect_equal(sizes, sorted(sizes, reverse=True), "order by bytes")
    expect_equal(sum(sizes), everything["leaked_bytes"], "sum of the leaks")

    few = read_report("leaks", output, "--limit", "3")
    expect_equal([entry["bytes"] for entry in few["leaks"]], sizes[:3], "the first three")
    expect_equal(few["leaked_bytes"], everything["leaked_bytes"], "total, whatever is shown")

    large = leaks(output, "--min-bytes", "5000")
    expect_equal([entry["bytes"] for entry in large["leaks"]], [n for n in sizes if n >= 5000], "those of 5000 and more")

    by_blocks = [entry["blocks"] for entry in leaks(output, "--sort", "blocks")["leaks"]]
    expect_equal(by_blocks, sorted(by_blocks, reverse=True), "order by blocks")


@case
def depth_merges_what_is_alike():
    output = record([PROGRAMS / "stacks", PROGRAMS])[1]
    whole, shallow = leaks(output, "--depth", "0"), leaks(output, "--depth", "1")
    assert all(len(entry["stack"]) <= 1 for entry in shallow["leaks"])
    assert len(shallow["leaks"]) < len(whole["leaks"])
    expect_equal(total(shallow["leaks"]), total(whole["leaks"]), "bytes of all leaks")


@case
def pid_chooses_a_process():
    _, output = record([PROGRAMS / "lifecycle", "fork"])
    everything = leaks(output)
    for process in everything["processes"]:
        one = leaks(output, "--pid", str(process["pid"]))
        expect_equal(one["leaked_bytes"], process["leaked_bytes"], "bytes of one process")
    expect_equal(run([TORSH, "leaks", output, "--pid", "1"]).returncode, 2, "status for a process that was not recorded")


@case
def suppressed_leaks_are_counted_apart():
    output = recorded()
    rules = scratch("rules") / "rules"
    rules.write_text("# known\nleak:leak_large\nleak:leak_m*oc\n")
    before, after = leaks(output), leaks(output, "--suppress", str(rules))
    gone = total(own(before)) - total(own(after))
    expect_equal(gone, (100 << 20) + 1001, "suppressed bytes")
    expect_equal(after["suppressed"]["bytes"], gone, "suppressed bytes in the report")
    expect_equal(after["leaked_bytes"], before["leaked_bytes"] - gone, "leaked bytes")


@case
def check_reports_by_its_status_whether_a_budget_holds():
    output = recorded()
    report, top = leaks(output), peak(output)
    leaked, highest = report["leaked_bytes"], top["peak_bytes"]
    for arguments, status in ((["--max-leak", str(leaked)], 0), (["--max-leak", str(leaked - 1)], 1),
                              (["--max-peak", str(highest)], 0), (["--max-peak", str(highest - 1)], 1),
                              (["--max-leak", "1G", "--max-peak", "1K"], 1), (["--max-leak", "much"], 2)):
        expect_equal(run([TORSH, "check", output, *arguments]).returncode, status, f"status of check {arguments}")


@case
def an_unrecorded_heap_has_no_figures():
    for env in ({"TORSH_PROFILER_PROFILE_MEMORY": "0"}, {"TORSH_PROFILER_ACTIVITIES": "torch"}):
        result, output = record([PROGRAMS / "entries"], env={**env, "TORSH_PROFILER_SUMMARY": "1"})
        assert b"alive at the end" not in result.stderr and b"events, 0 dropped" in result.stderr, result.stderr
        for command in ("leaks", "peak", "report"):
            text = torsh(command, output)
            assert "othing is known about the heap" in text and "the heap is not recorded" in text, text
            assert "No leaks" not in text and "Nothing that leaked" not in text, text
        for budget, known in (("--max-leak", False), ("--max-peak", False), ("--max-rss", True)):
            checked = run([TORSH, "check", output, budget, "1T", "--json"])
            (check,) = json.loads(checked.stdout)["checks"]
            expect_equal((checked.returncode, check["value"] is not None), (0, True) if known else (1, False), budget)
            assert known or "was not recorded" in check["reason"], check


@case
def output_that_can_not_be_written_is_an_error():
    output = recorded()
    for command in (["report"], ["leaks", "--json"], ["check", "--max-leak", "1T"], ["dump"]):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([TORSH, command[0], output, *command[1:]], stdout=full, stderr=subprocess.PIPE, check=False)
        expect_equal(result.returncode, 2, f"status of {command}")
        assert b"can't write the" in result.stderr, result.stderr


@case
def the_peak_is_that_of_the_program():
    output = recorded()
    report = peak(output)
    # The hundred megabytes are there at the peak, whatever else is.
    large = entries_through(report["holders"], "leak_large")
    expect_equal((total(large, "blocks"), total(large)), (1, 100 << 20), "blocks and bytes of leak_large")
    expect_equal(total(report["holders"]), report["peak_bytes"], "sum of the holders")
    assert report["rss_peak_bytes"] is None or report["rss_peak_bytes"] > 0
    assert report["at_ns"] > 0


@case
def usable_sizes_stand_beside_those_requested():
    for entry in own(leaks(recorded())):
        assert entry["usable_bytes"] >= entry["bytes"], entry
        assert entry["first_ns"] <= entry["last_ns"], entry


@case
def folded_stacks_hold_all_leaked_bytes():
    output = recorded()
    sums = collections.Counter()
    for line in torsh("export", output, "--format", "folded", "--all").splitlines():
        stack, n_bytes = line.rsplit(" ", 1)
        for name in ("leak_malloc", "leak_large", "leak_calloc"):
            if any(frame.startswith(f"{name} (") for frame in stack.split(";")[-3:]):
                sums[name] += int(n_bytes)
                assert stack.index("main (") < stack.index(name), f"outermost first: {stack}"
    expect_equal(dict(sums), {"leak_malloc": 1001, "leak_large": 100 << 20, "leak_calloc": 77}, "bytes by function")


@case
def dump_reports_what_is_in_a_file():
    file = recordings(recorded(TORSH_PROFILER_RECORD="full"))[0]
    text = torsh("dump", file)
    assert "entries" in text and len(text.splitlines()) > 10, text[:500]


@case
def a_torn_recording_is_read_to_where_it_is_whole():
    file = recordings(recorded())[0]
    whole = file.read_bytes()
    for n_bytes in range(len(whole) - 1, len(whole) // 2, -max(1, len(whole) // 40)):
        file.write_bytes(whole[:n_bytes])
        result = run([TORSH, "leaks", file, "--json"])
        assert result.returncode in (0, 2), f"{n_bytes} of {len(whole)} bytes: status {result.returncode}"
        assert result.returncode == 2 or json.loads(result.stdout)["version"] == 1


def expect_clean(recording, *commands):
    for command in commands:
        result = run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=no", TORSH, command[0], recording, *command[1:]])
        expect_equal(result.returncode, 0, f"status of {command} under valgrind ({result.stderr.decode()[-500:]})")


@case
def the_tools_are_clean_under_valgrind():
    need_command("valgrind")
    output = recorded(TORSH_PROFILER_RECORD="full")
    expect_clean(output, ["leaks"], ["peak"], ["leaks", "--json"], ["report"], ["dump"], ["regions"], ["check", "--max-leak", "1G"],
                 *(["export", "--format", name] for name in ("folded", "speedscope", "pprof", "html")))


@case
@long
def the_tools_of_timelines_are_clean_under_valgrind():
    need_command("valgrind")
    recording, _ = made(ranks=2, operators=404)
    target = scratch("exported")
    expect_clean(recording, *(["ops", "--group", group] for group in
                              ("name", "shape", "stack", "overload", "module", "phase", "step")),
                 ["ops", "--json"], ["steps"], ["steps", "--json"], ["modules"], ["kernels"], ["tensors"],
                 ["tensors", "--group", "stack", "--json"], ["leaks", "--growth"], ["dump"],
                 *(["export", "--format", name, "-o", target / name] for name in
                   ("chrome", "perfetto", "json", "csv", "sqlite", "tensorboard", "memory", "html")))


main()

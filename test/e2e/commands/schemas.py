#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
tools/schema/ is checked by a validator that is not ours, python3-jsonschema: that the files are schemas and closed, that what
the commands print fits them, and that the fast check of test/lib/schema.py, which the other tests use, finds the same.
"""

import collections
import functools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from exported import exported, made  # noqa: E402
from schema import expect_fits  # noqa: E402

FOLDER = ROOT / "tools/schema"
SHARED = "definitions.json"
OPEN = {"dump"}  # its messages are those of tools/store/recording.proto
# Of profile: objects of the program's own names; of report: labels of the user's.
FREE = {"layers", "metrics_status", "raw", "units", "labels"}
OPERATORS = 202


def jsonschema():
    try:
        import jsonschema
    except ImportError:
        missing("python3-jsonschema is not there")
    if not hasattr(jsonschema, "Draft202012Validator"):
        raise Skip("this python3-jsonschema doesn't support draft 2020-12")
    return jsonschema


def read(name):
    return json.loads(next(FOLDER.rglob(f"{name}.json")).read_text())


def names():
    return sorted(path.stem for path in FOLDER.rglob("*.json"))


def validator_of(name):
    shared, library = json.loads((FOLDER / SHARED).read_text()), jsonschema()
    try:
        from referencing import Registry, Resource
    except ImportError:  # before 4.18
        base = "https://schema.invalid/"  # relative references need one
        resolver = library.RefResolver(base + name, read(name), store={base + SHARED: shared})
        return library.Draft202012Validator(read(name), resolver=resolver)
    registry = Registry().with_resources((place + SHARED, Resource.from_contents(shared)) for place in ("", "../"))
    return library.Draft202012Validator(read(name), registry=registry)


def parts(value, without=frozenset()):
    """A value, and all that is inside of it but in members of these names."""
    yield value
    members = {name: inner for name, inner in value.items() if name not in without}.values() if isinstance(value, dict) else \
        value if isinstance(value, list) else ()
    for inner in members:
        yield from parts(inner, without)


@functools.lru_cache(None)
def documents():
    """By the name of the schema: what the commands print of recordings that have something of most kinds."""
    result, heap = record([PROGRAMS / "entries"])
    expect_equal(result.returncode, 0, "status")
    steps, _ = made(ranks=2, operators=OPERATORS)
    found = {name: [json.loads(torsh(name, output, "--json")) for output in (heap, steps)]
             for name in ("report", "brief", "leaks", "peak", "ops", "blas", "requests", "steps", "modules", "kernels", "tensors", "regions", "whatif", "rss",
                          "cpu", "ranks")}
    _, held = record([sys.executable, "-c", "held = [bytearray(1000000) for _ in range(9)]"])
    found["leaks"].append(leaks(held))
    _, waited = record([PROGRAMS / "waits"], scratch("waits"), env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    found["cpu"] += [json.loads(torsh("cpu", output, "--off", "--json")) for output in (heap, steps, waited)]
    _, busy = record([PROGRAMS / "cpu_burn", "0.05"], scratch("busy"), env={"TORSH_PROFILER_ACTIVITIES": "cpu", "TORSH_PROFILER_CPU_HZ": "1000"})
    found["cpu"].append(json.loads(torsh("cpu", busy, "--json")))
    found["leaks-why"] = [json.loads(torsh("leaks", "--why", "1", "--json", output)) for output in (heap, held)]
    found["leaks-growth"] = [json.loads(torsh("leaks", "--growth", "--json", output)) for output in (heap, steps)]
    found["peak-moments"] = [json.loads(torsh("peak", output, *arguments, "--json")) for output in (heap, steps)
                             for arguments in (("--at", "1s"), ("--since", "start"), ("--from", "0"))]
    found["diff"] = [json.loads(torsh("diff", before, after, "--json")) for before, after in ((heap, heap), (heap, steps))]
    # No claim held: status 1.
    found["validate"] = [json.loads(torsh("validate", before, after, "--json", expect=1)) for before, after in ((heap, heap), (heap, steps))]
    found["check"] = [json.loads(torsh("check", heap, "--max-leak", "1G", "--max-peak", "1T", "--json"))]
    found["list"] = [json.loads(torsh("list", "--json"))]
    found["dump"] = [json.loads(line) for line in torsh("dump", heap).splitlines()]
    for name, form in (("events", "json"), ("profile", "profile"), ("manifest", "manifest"), ("corr", "corr")):
        found[name] = [json.loads(exported(steps, f"x.{name}", "--format", form).read_text())]
    # The other actions need PyTorch: test/e2e/workloads/workloads.py.
    found["workloads"] = [json.loads(torsh("workloads", "list", "--json"))]
    return found


@case
def the_files_are_closed_schemas():
    for name in names():
        schema = read(name)
        jsonschema().Draft202012Validator.check_schema(schema)
        unclosed = [part for part in parts(schema) if isinstance(part, dict) and isinstance(part.get("properties"), dict) and
                    part.get("additionalProperties") is not False]
        expect_equal(bool(unclosed), name in OPEN, f"objects that {name}.json leaves open: {unclosed}")


@case
def every_shared_definition_is_used_more_than_once():
    used = collections.Counter(part["$ref"].rsplit("/", 1)[1] for name in names() for part in parts(read(name))
                               if isinstance(part, dict) and "$ref" in part)
    shared = json.loads((FOLDER / SHARED).read_text())["$defs"]
    expect_equal({name for name in shared if not used[name]}, set(), "definitions that nothing refers to")


@case
def each_command_that_prints_json_has_a_schema():
    listed = re.findall(r"(?m)^  torsh ([a-z]+) ", torsh("--help").split("Start with:")[0])
    print_json = {name for name in listed if "--json" in torsh(name, "--help")}
    # What it writes are files: events.json and profile.json.
    expect_equal(print_json - {name.split("-")[0] for name in names()} - {"export"}, set(), "commands without a schema")


@case
def what_the_commands_print_fits():
    expect_equal(set(documents()), {path for path in names()} - {pathlib.Path(SHARED).stem}, "schemas with a document")
    for name, values in documents().items():
        validator = validator_of(name)
        for value in values:
            faults = [f"{name}: {fault.json_path} {fault.message[:200]}" for fault in validator.iter_errors(value)]
            expect_equal(faults, [], f"faults that the validator finds in {name}")
            expect_fits(name, value)


def is_refused(name, value):
    try:
        expect_fits(name, value)
    except AssertionError:
        return True
    return False


@case
def both_checks_refuse_a_member_that_no_schema_has():
    n_tried = 0
    for name, values in documents().items():
        if name in OPEN:
            continue
        validator, value = validator_of(name), values[-1]
        for part in [part for part in parts(value, FREE) if isinstance(part, dict)][:40]:
            part["no_schema_has_this"] = "text"  # counters by name hold numbers
            is_valid = validator.is_valid(value)
            expect_equal((is_valid, is_refused(name, value)), (False, True), f"{name} with a member more in {part}")
            del part["no_schema_has_this"]
            n_tried += 1
    assert n_tried > 100, n_tried


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Recordings of earlier versions, in recordings/FORMAT/, are read as they were then:
NAME.COMMAND.json is the output of a command. Today's output may have more, but must not differ
otherwise. `old_recordings.py --keep` writes today's output for recordings that have none: review
it before you commit it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

RECORDINGS = pathlib.Path(__file__).resolve().parents[1] / "recordings"
# Whatever lies at the modules' paths today must not matter.
COMMANDS = {
    "leaks": ["--json", "--no-lines"],
    "peak": ["--json", "--no-lines"],
    "report": ["--json", "--no-lines"],
    "dump": ["--json"],
}
NAMES_OF_ITSELF = ("recording", "path")


def printed(command, recording):
    text = torsh(command, recording, *COMMANDS[command])
    if command == "dump":
        return [json.loads(line) for line in text.splitlines()]
    report = json.loads(text)
    for name in NAMES_OF_ITSELF:
        report.pop(name, None)
    return report


def expect_still_there(found, kept, where):
    """All that is in kept is in found; objects may have members more."""
    if isinstance(kept, dict):
        assert isinstance(found, dict), f"{where}: found {found!r}, not an object"
        for name, value in kept.items():
            assert name in found, f"{where}.{name} is gone"
            if name in ("function", "offset") and value is None:
                continue  # not in the recording: a file of this machine may have them
            expect_still_there(found[name], value, f"{where}.{name}")
    elif isinstance(kept, list):
        if where.endswith(".rules"):  # newer ones are among them
            names = {rule["rule"] for rule in kept}
            found = [rule for rule in found if rule["rule"] in names]
        expect_equal(len(found), len(kept), f"length of {where}")
        for i, value in enumerate(kept):
            expect_still_there(found[i], value, f"{where}[{i}]")
    else:
        expect_equal(found, kept, where)


def kept_path(recording, command):
    return recording.with_suffix(f".{command}.json")


def decode(recording):
    for command in COMMANDS:
        kept = json.loads(kept_path(recording, command).read_text())
        expect_still_there(printed(command, recording), kept, f"{recording.name}: {command}")


def keep():
    for recording in recordings(RECORDINGS):
        for command in COMMANDS:
            path = kept_path(recording, command)
            if not path.exists():
                path.write_text(json.dumps(printed(command, recording), separators=(",", ":")) + "\n")


for old in recordings(RECORDINGS):
    add_case(f"{old.parent.name}_{old.stem}".replace("-", "_"), decode, old)


@case
def there_are_some_of_each_format():
    formats = {int.from_bytes(path.read_bytes()[8:12], "little") for path in recordings(RECORDINGS)}
    newest = max(formats)
    expect_equal(formats, set(range(1, newest + 1)), "formats of the recordings that are kept")
    output = record([PROGRAMS / "entries"])[1]
    torsh("leaks", output)
    expect_equal(recordings(output)[0].read_bytes()[8], newest, "format that is written today")


if sys.argv[1:] == ["--keep"]:
    keep()
else:
    main()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The timeline's events as torsh dump prints them, with their labels as texts."""

import collections
import json
import struct

from harness import torsh

LABELS = ("name", "api", "domain", "category", "inputs", "overload", "chip", "field", "unit")
SOURCES = ("torsh", "nvtx", "itt", "module")
# Of the timeline, that is: not of the heap or the address space.
KINDS = ("range_push", "range_pop", "range_start", "range_end", "mark", "value", "step", "thread_name")


def _payload(event):
    kind, bits = event.pop("payload_type", 0), event.pop("payload", 0)
    if kind == 2:
        return bits - (1 << 64) if bits >> 63 else bits
    return (None, bits, None, struct.unpack("<d", bits.to_bytes(8, "little"))[0])[kind]


def events(recording):
    """
    Every event, in the order of each of its processes, as dictionaries: labels are texts, source is a word, payload is the
    number or None.
    """
    texts, found, owners = collections.defaultdict(dict), [], {}
    # The other tables may be large.
    for line in torsh("dump", recording, "--only", "process,functions,events,timeline").splitlines():
        row = json.loads(line)
        if isinstance(row.get("process"), dict):
            owners[row["process"]["process"]] = row["process"].get("tables_of", row["process"]["process"])
        elif "functions" in row:
            table = row["functions"]
            texts[table["process"]].update(enumerate(table["name"], table["first"] + 1))
        else:
            found.append(row)
    for event in found:
        of_process = texts[owners.get(event["process"], event["process"])]
        for field in LABELS:
            if field in event:
                event[field] = of_process[event[field]] if event[field] else None
        if "source" in event:
            event["source"] = SOURCES[event["source"]]
        if "payload_type" in event:
            event["payload"] = _payload(event)
    return found


def timeline(recording, kinds=KINDS):
    """The events of these kinds."""
    return [event for event in events(recording) if event["event"] in kinds]


def short(event, *fields):
    """The event's kind and the selected fields."""
    return (event["event"], *(event[field] for field in fields))


def nested(events, thread, domain=None, source=None):
    """Names of the ranges of one domain on one thread with their depths, in the order of their beginnings."""
    found, depth = [], 0
    for event in events:
        if event["event"] not in ("range_push", "range_pop") or event["thread"] != thread:
            continue
        if event["domain"] != domain or (source and event["source"] != source):
            continue
        if event["event"] == "range_push":
            found.append((depth, event["name"]))
        # A pop too many ends nothing.
        depth = depth + 1 if event["event"] == "range_push" else max(0, depth - 1)
    return found

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""manifest_models.py MANIFEST CORR: loads a mapping manifest and a correlation map with models of its own, made from the
interface that the operator profiler (yottalabsai/Profiler) publishes, and goes through them as it does: a kernel's operator is
the first of its sources, unless its method is unattributed; the map is looked up by a kernel's name and how many of that name
came before. Prints {"operators": {operator: [kernel ids]}, "unattributed": [ids], "mapped": {kernel id: operator}} as JSON.
Needs pydantic."""

import collections
import json
import pathlib
import sys

from profile_models import Confidence, Count, Method, Model, Range, Triple, once


class Attribution(Model):
    method: Method
    source_operators: list[str]
    nvtx_range: Range | None
    confidence: Confidence
    is_fused: bool
    all_enclosing_ranges: list[Range]
    fused_ops: list[str]


class Entry(Model):
    kernel_id: str
    kernel_name: str
    stream_id: Count
    device_id: Count
    start_ns: Count
    end_ns: Count
    duration_ns: Count
    grid_dim: Triple | None
    block_dim: Triple | None
    attribution: Attribution
    layer_partition: str | None
    is_unique_partition: bool


class Metadata(Model):
    model_name: str
    torch_version: str
    compile_mode: str
    nsys_report_path: str | None
    capture_timestamp_utc: str
    device_name: str | None
    input_shapes: dict[str, list[int]]


class Manifest(Model):
    schema_version: str
    capture_metadata: Metadata
    kernels: list[Entry]
    warnings: list[str]


class Mapped(Model):
    kernel_name: str
    invocation: Count
    op_name: str


class Map(Model):
    schema_version: str
    entries: list[Mapped]


def read(model, path):
    text = pathlib.Path(path).read_text()
    json.loads(text, object_pairs_hook=once)
    return model.model_validate_json(text)


if __name__ == "__main__":
    manifest, mapped = read(Manifest, sys.argv[1]), read(Map, sys.argv[2])
    operators, unattributed = collections.defaultdict(list), []
    for kernel in manifest.kernels:
        sources = kernel.attribution.source_operators
        place = operators[sources[0]] if kernel.attribution.method != Method.unattributed and sources else unattributed
        place.append(kernel.kernel_id)
    by_name = {(entry.kernel_name, entry.invocation): entry.op_name for entry in mapped.entries}
    assert len(by_name) == len(mapped.entries), "a kernel is in the map twice"
    seen, found = collections.Counter(), {}
    for kernel in manifest.kernels:
        operator = by_name.get((kernel.kernel_name, seen[kernel.kernel_name]))
        seen[kernel.kernel_name] += 1
        if operator:
            found[kernel.kernel_id] = operator
    json.dump({"operators": operators, "unattributed": unattributed, "mapped": found}, sys.stdout)

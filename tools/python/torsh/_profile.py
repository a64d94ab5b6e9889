# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The operator profile, profile.json 1.0, as classes with types. It reads the files of torsh export and those of the operator
profiler that published the form (yottalabsai/Profiler), which have fewer fields: what a file lacks is None, or empty.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Optional, Union

VERSION = "1.0"


class ProfileError(ValueError):
    """A file is no operator profile of a version that is known; the text says why."""


def _make(kind, found, where):
    """Returns found, a JSON object, as a dataclass; members that it doesn't have are left out."""
    if not isinstance(found, dict):
        raise ProfileError(f"{where} is no object")
    values = {}
    for one in fields(kind):
        if one.name not in found:
            if one.metadata.get("is_required"):
                raise ProfileError(f"{where} has no {one.name}")
            continue
        value, inner = found[one.name], one.metadata.get("of")
        place = f"{where}.{one.name}"
        if inner and isinstance(value, list):
            value = [_make(inner, item, f"{place}[{i}]") for i, item in enumerate(value)]
        elif inner and value is not None:
            value = _make(inner, value, place)
        values[one.name] = value
    return kind(**values)


def _required(of: Any = None) -> Any:
    # Fields without a default have to come first: a missing one is found before it is taken.
    return field(metadata={"is_required": True, "of": of})


def _one(of: Any) -> Any:
    return field(default=None, metadata={"of": of})


def _several(of: Any = None) -> Any:
    return field(default_factory=list, metadata={"of": of})


@dataclass
class NvtxRange:
    """A range of the program that named the operator."""

    text: str = _required()
    depth: int = _required()
    start_ns: int = _required()
    end_ns: int = _required()
    domain: str = "default"


@dataclass
class Metrics:
    """A kernel's counters by CUPTI's names, and their units."""

    raw: Dict[str, Union[float, int, str]] = field(default_factory=dict)
    units: Dict[str, str] = field(default_factory=dict)


@dataclass
class Kernel:
    """A kernel that ran. Times are nanoseconds since the recording began; sizes are bytes."""

    kernel_id: str = _required()
    kernel_name: str = _required()
    stream_id: int = _required()
    device_id: int = _required()
    start_ns: int = _required()
    end_ns: int = _required()
    duration_ns: int = _required()
    demangled_name: Optional[str] = None
    grid_dim: Optional[List[int]] = None
    block_dim: Optional[List[int]] = None
    metrics: Metrics = field(default_factory=Metrics, metadata={"of": Metrics})
    metrics_source: Optional[str] = None
    metrics_status: Dict[str, str] = field(default_factory=dict)
    attribution_method: str = "unattributed"
    confidence: str = "unattributed"
    method_detail: Optional[str] = None
    nvtx_range: Optional[NvtxRange] = _one(NvtxRange)
    op_path: List[str] = _several()
    reason_unattributed: Optional[str] = None
    phase: Optional[str] = None
    source_line: Optional[str] = None
    correlation_id: Optional[int] = None
    graph_id: Optional[int] = None
    graph_node_id: Optional[int] = None
    context_id: Optional[int] = None
    registers_per_thread: Optional[int] = None
    static_smem: Optional[int] = None
    dynamic_smem: Optional[int] = None
    theoretical_occupancy_pct: Optional[float] = None
    waves_per_sm: Optional[float] = None
    fused_flops: Optional[int] = None
    fused_flops_reason: Optional[str] = None


@dataclass
class Copy:
    """A copy or a memset."""

    copy_id: str = _required()
    kind: str = _required()
    stream_id: int = _required()
    device_id: int = _required()
    start_ns: int = _required()
    end_ns: int = _required()
    duration_ns: int = _required()
    bytes: Optional[int] = None
    attribution_method: str = "unattributed"
    confidence: str = "unattributed"
    method_detail: Optional[str] = None
    nvtx_range: Optional[NvtxRange] = _one(NvtxRange)
    op_path: List[str] = _several()
    reason_unattributed: Optional[str] = None
    phase: Optional[str] = None
    source_line: Optional[str] = None
    correlation_id: Optional[int] = None
    graph_id: Optional[int] = None
    graph_node_id: Optional[int] = None
    context_id: Optional[int] = None


@dataclass
class Aggregated:
    """An operator's kernels together. Shares are percents from 0 to 100; None was not measured."""

    total_duration_ns: int = _required()
    kernel_count: int = _required()
    dominant_kernel_id: Optional[str] = None
    total_dram_bytes_read: Optional[int] = None
    total_dram_bytes_written: Optional[int] = None
    memory_throughput_pct: Optional[float] = None
    dram_throughput_pct: Optional[float] = None
    mem_busy_pct: Optional[float] = None
    l1_hit_rate: Optional[float] = None
    l2_hit_rate: Optional[float] = None
    sm_throughput_pct: Optional[float] = None
    tensor_core_active_pct: Optional[float] = None
    achieved_occupancy: Optional[float] = None
    warp_cycles_per_instruction: Optional[float] = None
    eligible_cycles_pct: Optional[float] = None
    total_executed_instructions: int = 0
    total_issued_instructions: int = 0
    ipc_active: Optional[float] = None
    avg_threads_per_warp: Optional[float] = None
    registers_per_thread: Optional[float] = None
    local_memory_spills: Optional[int] = None
    dynamic_smem_per_block: Optional[float] = None


@dataclass
class Operator:
    """A call of an operator that made a device work."""

    operator_id: str = _required()
    operator_name: str = _required()
    call_index: int = _required()
    is_fused: bool = False
    fused_with: List[str] = _several()
    nvtx_range: Optional[NvtxRange] = _one(NvtxRange)
    kernels: List[Kernel] = _several(Kernel)
    copies: List[Copy] = _several(Copy)
    aggregated: Optional[Aggregated] = _one(Aggregated)
    self_wall_ns: Optional[int] = None
    cpu_time_ns: Optional[int] = None
    input_shapes: Optional[List[List[int]]] = None
    dtypes: Optional[List[str]] = None
    flops: Optional[int] = None
    flops_source: Optional[str] = None
    gflops_per_s: Optional[float] = None
    mem_bytes: Optional[int] = None
    host_alloc_bytes: Optional[int] = None
    device_alloc_bytes: Optional[int] = None
    seq: Optional[int] = None
    fwd_op_id: Optional[str] = None
    module_path: Optional[str] = None
    training_phase: Optional[str] = None
    pid: Optional[int] = None
    layer_group: Optional[str] = None
    layer_instance: Optional[int] = None
    is_representative: Optional[bool] = None
    metrics_status: Dict[str, str] = field(default_factory=dict)
    roofline: Optional[Dict[str, Any]] = None


@dataclass
class CaptureMetadata:
    """What was recorded, and how."""

    model_name: str = _required()
    torch_version: str = _required()
    capture_timestamp_utc: str = _required()
    cuda_version: Optional[str] = None
    compile_mode: str = "eager"
    nsys_report_path: Optional[str] = None
    ncu_report_path: Optional[str] = None
    device_name: Optional[str] = None
    agent_version: Optional[str] = None
    host: Optional[str] = None
    pid: Optional[int] = None
    rank: Optional[int] = None
    world_size: Optional[int] = None
    batch: Optional[int] = None
    steps: Optional[int] = None
    clock_source: Optional[str] = None
    clock_uncertainty_ns: Optional[int] = None
    capture_mode: Optional[str] = None
    capture_mode_reason: Optional[str] = None
    counter_mode: Optional[str] = None
    chip: Optional[str] = None
    driver_version: Optional[str] = None
    dropped_events: Optional[int] = None
    overhead_ns: Optional[int] = None


@dataclass
class Unmeasured:
    """A field that could not be measured."""

    what: str = _required()
    reason: str = _required()


@dataclass
class Profile:
    """An operator profile: each kernel is once in it, below the operator that launched it or among the unattributed."""

    capture_metadata: CaptureMetadata = _required(CaptureMetadata)
    schema_version: str = VERSION
    operators: List[Operator] = _several(Operator)
    unattributed_kernels: List[Kernel] = _several(Kernel)
    unattributed_copies: List[Copy] = _several(Copy)
    warnings: List[str] = _several()
    layers: Dict[str, str] = field(default_factory=dict)
    analysis: Optional[Dict[str, Any]] = None
    unmeasured: List[Unmeasured] = _several(Unmeasured)

    def kernels(self) -> "List[Kernel]":
        """Returns all kernels, those of operators first."""
        return [kernel for operator in self.operators for kernel in operator.kernels] + self.unattributed_kernels

    def slowest(self, n: int = 5) -> "List[Operator]":
        """Returns the operators whose kernels took longest."""
        measured = [operator for operator in self.operators if operator.aggregated]
        return sorted(measured, key=lambda operator: -operator.aggregated.total_duration_ns)[:n]  # type: ignore[union-attr]


def load_profile(path: object, command: "str | None" = None) -> Profile:
    """
    Returns an operator profile: of a file that torsh export --format profile or the operator profiler wrote, also compressed
    (.gz), or of a recording or its folder, which is exported first, with the torsh command, as torsh.Recording finds it.
    """
    import os

    path = os.fspath(path)  # type: ignore[call-overload]
    text = _export(path, command) if os.path.isdir(path) or path.endswith(".torsh") else _read(path)
    return _parse(path, text)


def _read(path):
    import gzip

    with open(path, "rb") as file:
        text = file.read()
    return gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text


def _export(path, command):
    from torsh._recording import run_command

    return run_command("export", path, "--format", "profile", command=command)


def _parse(path, text):
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise ProfileError(f"{path} is no JSON: {error}") from None
    version = found.get("schema_version", VERSION) if isinstance(found, dict) else None
    if version != VERSION:
        raise ProfileError(f"{path} has version {version} of operator profiles, not {VERSION}" if version else f"{path} is no object")
    return _make(Profile, found, path)

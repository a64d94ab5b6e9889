# SPDX-License-Identifier: Apache-2.0 OR MIT
"""profile_models.py FILE: loads an operator profile with models of its own, made from the tables of
the schema 1.0 that the operator profiler (yottalabsai/Profiler) publishes (its package is not on
PyPI); prints how many kernels there are. Unlike the published ones these take no number for a
text, no float for a number, and no key twice. Needs pydantic."""

import enum
import json
import pathlib
import sys
import typing

import pydantic

Count = typing.Annotated[int, pydantic.Field(ge=0)]
Percent = typing.Annotated[float, pydantic.Field(ge=0, le=100)]
Triple = typing.Annotated[list[Count], pydantic.Field(min_length=3, max_length=3)]


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="ignore")


class Method(str, enum.Enum):
    torch_profiler = "torch_profiler"
    nvtx = "nvtx"
    inductor_fusion = "inductor_fusion"
    unattributed = "unattributed"


class Confidence(str, enum.Enum):
    high = "high"
    medium = "medium"
    low = "low"
    unattributed = "unattributed"


class Range(Model):
    text: str
    depth: Count
    start_ns: Count
    end_ns: Count
    domain: str = "default"


class Metrics(Model):
    raw: dict[str, float | int | str]


class Kernel(Model):
    kernel_id: str
    kernel_name: str
    demangled_name: str | None = None
    stream_id: Count
    device_id: Count
    start_ns: Count
    end_ns: Count
    duration_ns: Count
    grid_dim: Triple | None = None
    block_dim: Triple | None = None
    metrics: Metrics
    attribution_method: Method
    confidence: Confidence
    nvtx_range: Range | None = None


class Aggregated(Model):
    total_duration_ns: Count
    kernel_count: Count
    dominant_kernel_id: str | None
    total_dram_bytes_read: Count | None
    total_dram_bytes_written: Count | None
    memory_throughput_pct: Percent | None
    dram_throughput_pct: Percent | None
    mem_busy_pct: Percent | None
    l1_hit_rate: Percent | None
    l2_hit_rate: Percent | None
    sm_throughput_pct: Percent | None
    tensor_core_active_pct: Percent | None
    achieved_occupancy: Percent | None
    warp_cycles_per_instruction: float | None
    eligible_cycles_pct: Percent | None
    total_executed_instructions: Count
    total_issued_instructions: Count
    ipc_active: float | None
    avg_threads_per_warp: float | None
    registers_per_thread: float | None
    local_memory_spills: Count | None
    dynamic_smem_per_block: float | None


class Operator(Model):
    operator_id: str
    operator_name: str
    call_index: Count
    is_fused: bool
    fused_with: list[str]
    nvtx_range: Range | None
    kernels: list[Kernel]
    aggregated: Aggregated


class Metadata(Model):
    model_name: str
    torch_version: str
    cuda_version: str | None
    compile_mode: str
    nsys_report_path: str | None
    ncu_report_path: str | None
    capture_timestamp_utc: str
    device_name: str | None


class Profile(Model):
    schema_version: typing.Literal["1.0"]
    capture_metadata: Metadata
    operators: list[Operator]
    unattributed_kernels: list[Kernel]
    warnings: list[str]


def once(pairs):
    """A JSON object with unique keys."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError(f"a key is there twice: {pairs}")
    return dict(pairs)


if __name__ == "__main__":
    text = pathlib.Path(sys.argv[1]).read_text()
    json.loads(text, object_pairs_hook=once)
    profile = Profile.model_validate_json(text)
    print(sum(len(operator.kernels) for operator in profile.operators) + len(profile.unattributed_kernels))

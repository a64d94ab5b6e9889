#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What Python's torsh has for PyTorch: FLOPs without computing, capture, and operator profiles as classes."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from simcuda import record_simulated  # noqa: E402

ENVIRONMENT = {"PYTHONPATH": str(ROOT / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1"}

FLOPS = """
import sys, torsh
assert "torch" not in sys.modules, "importing torsh imports torch"
import torch
before = set(sys.modules)
from torch.utils.flop_counter import FlopCounterMode
def counted(function, *inputs, backward=False):
    with FlopCounterMode(display=False) as counter:
        output = function(*inputs)
        if backward:
            output.sum().backward()
    return counter.get_total_flops()
nn = torch.nn
f = torch.nn.functional
conv = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2, 2, groups=2))
layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
attention = lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True)
heads = (2, 4, 10, 8)
weight = torch.randn(5, 6)
mine = lambda x, scale=1: (x @ weight).sum() * scale
for function, shapes in ((conv, [(2, 3, 16, 16)]), (layer, [(2, 7, 32)]), (attention, [heads] * 3), (torch.matmul, [(3, 4), (4, 5)]),
                         (nn.Bilinear(4, 5, 6), [(2, 4), (2, 5)]), (mine, [(3, 5)])):
    real = [torch.randn(shape) for shape in shapes]
    expected = counted(function, *real)
    # PyTorch's counter doesn't see the products inside of a bilinear layer.
    assert expected > 0 or type(function) is nn.Bilinear, function
    assert torsh.flops(function, *shapes) == expected, (function, torsh.flops(function, *shapes), expected)
    assert torsh.flops(function, *real) == expected, "of tensors"
for model, shape in ((conv, (2, 3, 16, 16)), (layer, (2, 7, 32))):
    parameter = next(model.parameters())
    values, gradient = parameter.detach().clone(), parameter.grad
    expected = counted(model, torch.randn(shape), backward=True)
    parameter.grad = None
    assert torsh.flops(model, shape, backward=True) == expected, (model, expected)
    assert parameter.grad is None and torch.equal(parameter, values), "the model was changed"
table = nn.Embedding(100, 8)
assert torsh.flops(nn.Sequential(table, nn.Linear(8, 3)), ((4, 5), "int64")) == 2 * 20 * 8 * 3
assert torsh.flops(nn.Sequential(table, nn.Linear(8, 3)), ((4, 5), torch.int32)) == 2 * 20 * 8 * 3
assert torsh.flops(mine, (3, 5), scale=2) == 2 * 3 * 5 * 6
# 100 TB are never allocated.
assert torsh.flops(torch.mm, (5000000, 5000000), (5000000, 1)) == 2 * 5000000 ** 2
try:
    torsh.flops(lambda x: x @ x[: int(x.sum())].T, (4, 4))
except Exception as error:
    print(type(error).__name__)
try:
    torsh.flops(lambda x: x.long(), (4, 4), backward=True)
except ValueError as error:
    print(error)
with torch.no_grad():
    assert torch.ones(2).device.type == "cpu" and type(torch.ones(2)) is torch.Tensor, "the mode is left"
"""

CAPTURE = """
import sys, torsh
calls = []
def work(a, b=0):
    calls.append((a, b))
    return a + b
captured = torsh.capture(work, 1, b=2, warmup_iters=3, measure_iters=2)
assert calls == [(1, 2)] * 5, calls
assert (captured.output, len(captured.durations_ns), captured.first_step) == (3, 2, 3), captured
assert all(ns > 0 for ns in captured.durations_ns)
assert "torch" not in sys.modules
def fails():
    raise KeyError("mine")
for wrong in (lambda: torsh.capture(work, 1, measure_iters=0), lambda: torsh.capture(fails)):
    try:
        wrong()
    except (ValueError, KeyError) as error:
        print(type(error).__name__)
"""
CAPTURED = "ValueError\nKeyError\n"

MODEL = """
import torch, torsh
model = torch.nn.Linear(64, 64).cuda()
x = torch.randn(8, 64, device="cuda")
with torch.no_grad():
    torsh.capture(model, x, warmup_iters=2, measure_iters=3)
"""


@case
@needs("torch")
def flops_without_computing_are_flop_counter_modes():
    result = run([torch_python(), "-W", "ignore", "-c", FLOPS], {**clean_environment(), **ENVIRONMENT})
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
    expect_equal(result.stdout.decode().splitlines(),
                 ["DataDependentOutputException", "no result of the function needs a gradient: there is no backward pass"], "errors")


@case
def captures_call_the_same_with_and_without_the_agent():
    bare = run([sys.executable, "-c", CAPTURE], {**clean_environment(), **ENVIRONMENT})
    expect_equal((bare.returncode, bare.stdout.decode()), (0, CAPTURED), f"without the agent {bare.stderr.decode()}")
    recorded, output = record([sys.executable, "-c", CAPTURE], env=ENVIRONMENT)
    expect_equal((recorded.returncode, recorded.stdout.decode()), (0, CAPTURED), f"with the agent {recorded.stderr.decode()}")
    report = read_report("steps", output, "--limit", "0")
    expect_equal(report["rule"], "user", "rule")
    # Five calls and what is after them; then the one of the second, which failed, and what is after that.
    expect_equal([step["index"] for step in report["steps"]][:6], [0, 1, 2, 3, 4, 5], "steps")
    measured = read_report("steps", output, "--region", "capture")["steps"]
    expect_equal([step["index"] for step in measured], [3, 4], "steps within the range")


@case
def only_what_is_used_is_imported():
    script = """
import sys, torsh
new = {"torsh._profile", "torsh._capture", "torsh._flops", "dataclasses", "typing", "torch"} & set(sys.modules)
assert not new, new
assert torsh.Profile and torsh.capture and "torch" not in sys.modules
assert set(torsh.__all__) <= set(dir(torsh)) | {"flops", "load_profile", "Captured", "request"}
for name in torsh.__all__:
    getattr(torsh, name)
"""
    for environment in ({}, {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}):
        result = run([sys.executable, "-S", "-c", script], {**clean_environment(), **ENVIRONMENT, **environment})
        expect_equal((result.returncode, result.stderr), (0, b""), "imports")


def as_json(value):
    """A class of a profile as the JSON that it was made from."""
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: as_json(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


@case
@needs("torch")
def profiles_are_loaded_with_all_of_their_fields():
    from simcuda import cuda_python
    sys.path.insert(0, ENVIRONMENT["PYTHONPATH"])
    import torsh
    output, _ = record_simulated([cuda_python(), "-c", MODEL], env={"PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{ROOT}/test/python/quiet_end"})
    path = scratch("exported") / "a.profile.json.gz"
    torsh_text = torsh_export(output, path)
    loaded = torsh.load_profile(path)
    expect_equal(as_json(loaded), torsh_text, "every field of the file, and no other")
    of_recording = torsh.load_profile(output, command=str(TORSH))
    expect_equal(as_json(of_recording.operators), torsh_text["operators"], "of a recording")
    slowest = loaded.slowest(1)[0]
    expect_equal(slowest.aggregated.total_duration_ns, max(operator["aggregated"]["total_duration_ns"]
                                                           for operator in torsh_text["operators"]), "slowest")
    expect_equal(len(loaded.kernels()), sum(len(operator["kernels"]) for operator in torsh_text["operators"])
                 + len(torsh_text["unattributed_kernels"]), "kernels")


def torsh_export(output, path):
    import gzip
    torsh("export", output, "--format", "profile", "-o", path)
    return json.loads(gzip.decompress(path.read_bytes()))


@case
def what_is_no_profile_is_refused_with_a_reason():
    sys.path.insert(0, ENVIRONMENT["PYTHONPATH"])
    import torsh
    path = scratch("wrong") / "a.json"
    for text, word in (("nonsense", "is no JSON"), ("[]", "is no object"), ('{"schema_version": "2.0"}', "version 2.0"),
                       ("{}", "has no capture_metadata"),
                       ('{"capture_metadata": {"model_name": "a", "torch_version": "b"}}', "capture_metadata has no capture_timestamp_utc")):
        path.write_text(text)
        try:
            torsh.load_profile(path)
        except ValueError as error:
            assert word in str(error), (text, error)
        else:
            raise AssertionError(f"{text} was loaded")
    # What the published files have is enough.
    path.write_text('{"capture_metadata": {"model_name": "a", "torch_version": "b", "capture_timestamp_utc": "c"}, "operators": '
                    '[{"operator_id": "aten::mm_0", "operator_name": "aten::mm", "call_index": 0, "aggregated": null}]}')
    loaded = torsh.load_profile(path)
    expect_equal((loaded.operators[0].kernels, loaded.operators[0].aggregated, loaded.unmeasured), ([], None, []), "what is missing")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
python -m torsh.workloads._worker NAME VARIANT DEVICE SIZE WARMUP MEASURE FILE PARENT: runs one workload in one variant, each
call as a step, and writes what it saw itself as JSON to FILE. torsh workloads run starts it under the agent.
"""

import ctypes
import itertools
import json
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
TURN = "TORSH_WORKLOADS_TURN"  # descriptors: of answers, and of requests
SAMPLES = 256  # numbers of the output that are kept, at equal distances


def _prepare(torch, variant, device, model, inputs):
    """Returns the function to call."""
    if variant == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        inputs = tuple(x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs)
    elif variant == "compile":
        torch._dynamo.config.allow_rnn = True  # else recurrent layers are left as they are
        model = torch.compile(model)
    elif variant == "cudagraphs":
        model = torch.compile(model, backend="cudagraphs")
    elif variant == "amp":
        dtype = torch.bfloat16 if device == "cpu" else torch.float16
        return lambda: _autocast(torch, device, dtype, model, inputs)
    return lambda: model(*inputs)


def _autocast(torch, device, dtype, model, inputs):
    with torch.autocast(device, dtype=dtype):
        return model(*inputs)


class _Turn:
    """While this process measures, torsh workloads run stops the others that it started: by pipes, from TURN and to it."""

    def __init__(self, numbers):
        self._answers, self._requests = map(int, numbers.split(","))

    def take(self):
        os.write(self._requests, b"?")
        os.read(self._answers, 1)

    def give_back(self):
        os.close(self._requests)

    def taken_after(self, warmup, run):
        """run, after whose call of that number it is this process's turn: the wait is a part of that call."""
        calls = itertools.count(1)
        if not warmup:
            self.take()

        def call():
            output = run()
            if next(calls) == warmup:
                self.take()
            return output
        return call


def _first_tensor(torch, output):
    from torch.utils._pytree import tree_flatten

    return next((leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)), None)


def _describe(tensor):
    if tensor is None:
        return None
    flat = tensor.detach().reshape(-1).float().cpu()
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype).partition(".")[2],
            "sample": flat[::-(-flat.numel() // SAMPLES) or 1].tolist()}


def _count_flops(model, inputs):
    """What FlopCounterMode counts of a call of the plain model, or None and why not."""
    import torsh

    try:
        return torsh.flops(model, *inputs), None
    except Exception as error:  # of a workload of the user's: whatever it does
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _end_with(parent):
    """The kernel ends this process when the one that started it ends, so that a later run finds the folder unused."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A launcher may be in between.
    if os.getppid() == 1 != parent:
        sys.exit("torsh workloads run has ended")


def main(name, variant, device, size, warmup, measure, path, parent):
    _end_with(int(parent))
    import torch

    import torsh
    from torsh.workloads import SIMULATED, load, usual_size

    size = size or usual_size(device)
    torch.manual_seed(0)
    model, inputs = load(name, device, size)
    run = _prepare(torch, variant, device, model, inputs)
    turn = _Turn(os.environ.pop(TURN))
    with torch.no_grad():
        captured = torsh.capture(turn.taken_after(int(warmup), run), warmup_iters=int(warmup), measure_iters=int(measure))
    turn.give_back()
    device_name = torch.cuda.get_device_name() if device == "cuda" else None
    flops, why_not = _count_flops(model, inputs)
    found = {"torch": torch.__version__, "size": size, "threads": torch.get_num_threads(), "device_name": device_name,
             "is_simulated": device_name == SIMULATED, "first_step": captured.first_step,
             "durations_ns": captured.durations_ns, "model_flops": flops, "model_flops_reason": why_not,
             "parameters": sum(parameter.numel() for parameter in model.parameters()),
             # What simulated kernels leave in memory is nothing.
             "output": None if device_name == SIMULATED else _describe(_first_tensor(torch, captured.output))}
    with open(path + ".part", "w") as file:
        json.dump(found, file)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torch_state.py FILE: imports torch, and writes what the process is like then, and again after some work and torch.compile:
what a program could see of a profiler that ran before it.
"""
import json
import os
import random
import re
import signal
import sys
import threading
import warnings
import zlib

random.seed(5)
warned = []
warnings.showwarning = lambda message, *rest, **named: warned.append(str(message))
warnings.simplefilter("always")

import numpy  # noqa: E402

numpy.random.seed(5)

import torch  # noqa: E402


def memory_kb():
    with open("/proc/self/status") as status:
        found = dict(re.findall(r"(Rss\w+):\s+(\d+) kB", status.read()))
    return {name: int(value) for name, value in found.items()}


def hooks():
    tables = vars(torch.nn.modules.module)
    return {name: len(table) for name, table in tables.items() if name.startswith("_global_") and hasattr(table, "__len__")}


def digest(numbers):
    return zlib.crc32(numpy.ascontiguousarray(numbers).tobytes())


def random_state_of_torch():
    """Without a seed it differs each time; nothing has been drawn from it."""
    now = torch.get_rng_state()
    as_seeded = torch.Generator().manual_seed(torch.initial_seed()).get_state()
    return "as seeded" if torch.equal(now, as_seeded) else digest(now)


def text(thing):
    """Without its address."""
    return re.sub(" at 0x[0-9a-f]+", "", str(thing))


def state():
    numbers, position = numpy.random.get_state()[1:3]
    return {
        "modules": sorted(sys.modules),
        "memory_kb": memory_kb(),
        "system threads": len(os.listdir("/proc/self/task")),
        "Python's threads": [thread.name for thread in threading.enumerate()],
        "signal handlers": [text(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "finders": [text(finder) for finder in sys.meta_path],
        "path": [re.sub(r"/tmp\w{8}$", "/tmp", folder) for folder in sys.path],
        "trace and profile": [text(sys.gettrace()), text(sys.getprofile())],
        "exception hooks": [text(sys.excepthook), text(threading.excepthook)],
        "warnings": warned,
        "warnings' filters": [text(entry) for entry in warnings.filters],
        "random": digest(random.getstate()[1]),
        "numpy.random": [digest(numbers), position],
        "torch.random": random_state_of_torch(),
        "gradients": [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()],
        "default type": str(torch.get_default_dtype()),
        "threads of operators": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "deterministic": [torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
                          torch.is_warn_always_enabled(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark],
        "autocast": [torch.is_autocast_enabled(), torch.is_autocast_cpu_enabled(), torch.is_autocast_cache_enabled()],
        "dispatch modes": [torch._C._len_torch_dispatch_stack(), torch._C._len_torch_function_stack()],
        "CUDA is initialized": torch.cuda.is_initialized(),
        "hooks of modules": hooks(),
        "is any a global hook": bool(torch.nn.modules.module._has_any_global_hook())
        if hasattr(torch.nn.modules.module, "_has_any_global_hook") else None,
        "compilers": sorted({"torch._dynamo", "torch._inductor", "triton"} & set(sys.modules)),
    }


def work():
    """In Python, in the compiler, and by numbers at random."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    inputs = torch.randn(3, 4)
    model(inputs).sum().backward()
    shape_only = torch.empty(3, 5, device="meta").t()
    torch._dynamo.reset()

    def network(batch):
        return torch.relu(model(batch))

    compiled = torch.compile(network, backend="eager", fullgraph=True)
    explained = torch._dynamo.explain(network)(inputs)
    return {"results": [model(inputs).tolist(), compiled(inputs).tolist(), compiled(inputs[:2]).tolist()],
            "gradients": [parameter.grad.tolist() for parameter in model.parameters()],
            "shape": list(shape_only.shape), "graphs": [explained.graph_count, explained.graph_break_count],
            "at random": [torch.rand(2).tolist(), random.Random(3).random()]}


if __name__ == "__main__":
    seen = {"version": torch.__version__, "imported": state()}
    print("between")
    seen["worked"] = work()
    seen["afterwards"] = state()
    with open(sys.argv[1], "w") as file:
        json.dump(seen, file)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Small PyTorch models that do one step of training each, run by test/e2e/torch_*.py:

    torch_steps.py FILE WHAT:MODEL,MODEL...

writes what came of each WHAT with each MODEL. Many go into one process, as importing PyTorch takes longer than all of them.
WHAT: "witness" has torch.profiler look at the step too and writes what it saw, "tensors" writes what the storages hold,
"run" writes the losses and sums of the gradients, "workers" what the workers of a DataLoader gave, "compiled" what
torch.compile, TorchScript and torch.export make of it, "threads" has torch.profiler look at the backward of what two other
threads ran forward.
"""
import gc
import json
import os
import sys
import threading
import time

import torch
from torch import nn


# Before, torch.profiler sorted memory into operators by microseconds: into another one now and then.
HAS_NANOSECONDS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 9)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self):
        return self.layers(torch.randn(8, 16))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4))

    def forward(self):
        return self.layers(torch.randn(4, 3, 16, 16))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self):
        return self.encoder(torch.randn(2, 6, 32))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(8, 16, num_layers=2, batch_first=True)

    def forward(self):
        return self.cells(torch.randn(3, 5, 8))[0]


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(100, 16), nn.Linear(16, 3)

    def forward(self):
        words = self.table(torch.arange(12).reshape(3, 4))
        return self.head(torch.cat([words[:, :2], words[:, 2:]], dim=1).transpose(1, 2).mean(dim=2))


class Inductor(nn.Module):
    """A transformer's layer that torch.compile has made into C++."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.layer = torch.compile(layer)

    def forward(self):
        return self.layer(torch.randn(2, 6, 32))


MODELS = {kind.__name__.lower(): kind for kind in (Mlp, Cnn, Transformer, Lstm, Embedding, Inductor)}


def step(model, optimizer):
    optimizer.zero_grad()
    loss = model().square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def overloads_wanted():
    """Makes torch.profiler record overloads, in versions that can."""
    try:
        return {"experimental_config": torch._C._profiler._ExperimentalConfig(capture_overload_names=True)}
    except TypeError:
        return {}


def profile(**named):
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **named)


def threads(model, optimizer):
    losses = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: losses.append(model().square().mean()))
        thread.start()
        thread.join()
        # Python's join returns earlier than the thread ends, after which the next one takes over what the agent kept of it.
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):
            time.sleep(0.001)
    with profile(**overloads_wanted()) as profiler:
        with torch.profiler.record_function("the window"):
            for loss in losses:
                loss.backward()
    return {"nodes": [[event.name, event.fwd_thread, event.sequence_nr] for event in profiler.events()
                      if event.fwd_thread],
            "overloads": [[event.name, getattr(event, "overload_name", "")] for event in profiler.events()]}


# What torch.profiler's own list of events leaves out.
UNLISTED = {"[memory]", "aten::is_leaf", "aten::output_nr", "aten::_version"}


def listed(profiler):
    """
    Its events as Kineto has them. The list that torch.profiler makes of them takes what seems to lie in another of the same
    name for one event; with times in microseconds two that follow each other seem so now and then.
    """
    return [event for event in profiler.profiler.kineto_results.events()
            if event.name() not in UNLISTED and not getattr(event, "is_hidden_event", lambda: False)()
            and not event.name().startswith("profiler::_record_function")]


def witness(model, optimizer):
    if isinstance(model, Inductor):
        step(model, optimizer)  # compiles it
        step(model, optimizer)
    gc.collect()  # what others left would be freed in the window, or not
    with profile(record_shapes=True, profile_memory=True) as profiler:
        with torch.profiler.record_function(f"the window of {type(model).__name__.lower()}"):
            step(model, optimizer)
    return {
        "events": [[event.name(), event.shapes(), event.sequence_nr(), event.start_thread_id(), event.fwd_thread_id()]
                   for event in listed(profiler)],
        "memory": [event.nbytes() for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"],
        "columns": sorted([row.key, row.count, row.cpu_memory_usage, row.self_cpu_memory_usage]
                          for row in profiler.key_averages()) if HAS_NANOSECONDS else None,
    }


everything = []  # that `tensors` keeps


def tensors(model, optimizer):
    """What this model and those before it hold."""
    step(model, optimizer)
    optimizer.zero_grad(set_to_none=True)
    everything.extend(tensor for group in optimizer.state.values() for tensor in group.values() if torch.is_tensor(tensor))
    everything.extend([*model.parameters(), *model.buffers()])
    with torch.profiler.record_function(f"the end of {type(model).__name__.lower()}"):
        pass
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
                for tensor in everything if torch.is_tensor(tensor)}
    return {"bytes": sum(storages.values()), "blocks": len([n for n in storages.values() if n])}


def run(model, optimizer):
    losses = [step(model, optimizer) for _ in range(3)]
    return {"losses": losses, "gradients": [p.grad.double().abs().sum().item() for p in model.parameters()]}


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((3,), float(index))


def workers(model, optimizer):
    totals = []
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context=context)
        totals.append(sum(batch.sum().item() for batch in loader))
    return {"totals": totals}


def compiled(model, optimizer):
    """Without Inductor: it needs a compiler, and a minute."""
    layers = model.layers
    same = torch.compile(layers, backend="aot_eager", fullgraph=True)
    inputs = torch.randn(8, 16)
    scripted, traced = torch.jit.script(layers), torch.jit.trace(layers, inputs)
    results = [call(inputs).sum().item() for call in (layers, same, same, scripted, traced)]
    nodes = [str(node.target) for node in torch.export.export(layers, (inputs,)).graph.nodes]
    return {"results": results, "nodes": nodes}


LOOKS = {look.__name__: look for look in (witness, tensors, run, workers, compiled, threads)}


def look_at(look, name):
    torch.manual_seed(0)
    model = MODELS[name]()
    return look(model, torch.optim.Adam(model.parameters()))


def main():
    path, *wanted = sys.argv[1:]
    torch.set_num_threads(1)
    results = {}
    for what, _, names in (one.partition(":") for one in wanted):
        results[what] = {name: look_at(LOOKS[what], name) for name in names.split(",")}
    with open(path, "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Trainings and inference on a CUDA device that know whose memory is whose: NAME. Prints as JSON, by the model's own objects
and PyTorch's history of its allocator, the bytes of each kind at each mark that it sets, and when tensors had most.
NAME requested: without that history, the bytes that the model's objects requested, at the last mark.
"""

import collections
import ctypes
import json
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = 3
MIB = 1 << 20
agent = ctypes.CDLL(None)


class Block(nn.Module):
    """Its wide result is kept for the backward pass, or computed again for that."""

    def __init__(self, width):
        super().__init__()
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = torch.relu(self.wide(x))
        WITNESS.see_recomputed(hidden)
        return self.narrow(hidden)


class Network(nn.Module):
    WIDTH, CLASSES = 384, 10

    def __init__(self, is_checkpointed=False):
        super().__init__()
        self.blocks = nn.ModuleList(Block(self.WIDTH) for _ in range(3))
        self.norm = nn.BatchNorm1d(self.WIDTH, track_running_stats=True)
        self.head = nn.Linear(self.WIDTH, self.CLASSES)
        self.is_checkpointed = is_checkpointed

    def forward(self, x):
        for block in self.blocks:
            if self.is_checkpointed:
                x = checkpoint(block, x, use_reentrant=False)
                WITNESS.label("activations", x)
            else:
                x = block(x)
        return self.head(self.norm(x))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(64), nn.Linear(64 * 64, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.first(x)), 2)
        return self.head(torch.max_pool2d(self.norm(self.second(x)), 2).flatten(1))


class Attention(nn.Module):
    WIDTH, WORDS, LENGTH = 128, 1000, 64

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, self.WIDTH)
        self.norm, self.of_inputs = nn.LayerNorm(self.WIDTH), nn.Linear(self.WIDTH, 3 * self.WIDTH)
        self.dropout, self.head = nn.Dropout(0.1), nn.Linear(self.WIDTH, self.WORDS)

    def forward(self, x):
        x = self.words(x)
        query, key, value = self.of_inputs(self.norm(x)).chunk(3, -1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        weights = self.dropout((query @ key.transpose(-1, -2)).masked_fill(mask, float("-inf")).softmax(-1))
        return self.head(x + weights @ value).flatten(0, 1)


class Recurrent(nn.Module):
    WORDS = 1000

    def __init__(self):
        super().__init__()
        self.words, self.cells = nn.Embedding(self.WORDS, 64), nn.LSTM(64, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 5)

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0][:, -1])


class Witness:
    """Which allocation is of which kind, by the number of the history's entries when it was seen."""

    def __init__(self):
        self.labels, self.marks, self.is_backward = [], [], False
        self.has_history = "requested" not in sys.argv
        self.sizes = []  # of the blocks that were alive: the history has what was requested
        self.free = {}  # by mark: of the allocator's free blocks, without and with private pools

    def end(self, model, optimizer, *inputs):
        """At the last mark, by the objects alone."""
        state = (value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value))
        kinds = {"parameters": [*model.parameters(), *model.buffers()], "optimizer_state": state, "inputs": inputs,
                 "gradients": (parameter.grad for parameter in model.parameters())}
        return {kind: sum(one.numel() * one.element_size() for one in tensors if one is not None and one.is_cuda)
                for kind, tensors in kinds.items()}

    def start(self):
        torch.cuda.memory._record_memory_history(context=None, max_entries=1 << 20)

    def history(self):
        if not self.has_history:
            return []
        snapshot = torch.cuda.memory._snapshot()
        history = snapshot["device_traces"][0]
        blocks = {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"]
                  if block["state"] == "active_allocated"}
        self.sizes.append((len(history), blocks))
        return history

    def label(self, kind, *tensors):
        addresses = [tensor.untyped_storage().data_ptr() for tensor in tensors if tensor is not None and tensor.is_cuda]
        self.labels.append((len(self.history()), kind, addresses))

    def see_recomputed(self, tensor):
        if self.is_backward:
            self.label("activations", tensor)

    def mark(self, name):
        torch.cuda.synchronize()
        agent.torsh_v1_mark(name.encode(), None)
        if not self.has_history:
            return
        self.free[name] = [[block["size"] for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]
                            if block["state"] == "inactive" and (tuple(segment["segment_pool_id"]) != (0, 0)) == is_private]
                           for is_private in (False, True)]
        self.marks.append((len(self.history()), name))

    def pack(self, tensor):
        self.label("activations", tensor)
        return tensor

    def owners(self):
        """By mark, and at the peak."""
        history, live, found = self.history(), {}, {}
        labels, marks, sizes = (collections.deque(queue) for queue in (self.labels, self.marks, self.sizes))
        kinds, peak, reserved = {}, (0, 0), 0
        snapshots, sized = {}, {}

        def settle(number):
            while sizes and sizes[0][0] <= number:
                for address, size in sizes.popleft()[1].items():
                    if address in live:
                        sized[live[address][0]] = size
            while labels and labels[0][0] <= number:
                _, kind, addresses = labels.popleft()
                for address in addresses:
                    if address in live:
                        kinds.setdefault(live[address][0], kind)  # the first one counts
            while marks and marks[0][0] <= number:
                snapshots[marks.popleft()[1]] = list(live.values())

        for number, entry in enumerate(history):
            settle(number)
            action, address, size = entry["action"], entry["addr"], entry["size"]
            if action in ("segment_alloc", "segment_map"):
                reserved += size
            elif action in ("segment_free", "segment_unmap"):
                reserved -= size
            elif action == "alloc":
                live[address] = (number, -(-size // 512) * 512)
            elif action == "free_requested":
                live.pop(address, None)
            now = (reserved, sum(size for _, size in live.values()))
            if now > peak:
                peak, snapshots["peak"] = now, list(live.values())
        settle(len(history))
        for name, blocks in snapshots.items():
            found[name] = collections.Counter()
            for number, size in blocks:
                found[name][kinds.get(number, "others")] += sized.get(number, size)
        return found


WITNESS = Witness()


def adam(model):
    return torch.optim.Adam(model.parameters(), 1e-3)


def momentum(model):
    return torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.01)


def vectors(batch=96):
    return torch.randn(batch, Network.WIDTH), torch.randint(10, (batch,))


def images(batch=16):
    return torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))


def sentences(batch=8):
    shape = (batch, Attention.LENGTH)
    return torch.randint(Attention.WORDS, shape), torch.randint(Attention.WORDS, (batch * Attention.LENGTH,))


def labelled_sentences(batch=16):
    return torch.randint(Recurrent.WORDS, (batch, 32)), torch.randint(5, (batch,))


def frozen():
    """Half of it is not trained."""
    model = Network()
    for block in model.blocks[:2]:
        block.requires_grad_(False)
    return model


def placed():
    """Made on the device."""
    with torch.device("cuda"):
        return Network()


# By name: the model, what makes a batch, the optimizer, and how many batches a step has.
PROGRAMS = {
    "sgd": (Network, vectors, sgd, 1),
    "momentum": (Network, vectors, momentum, 1),
    "adam": (Network, vectors, adam, 1),
    "accumulated": (Network, vectors, adam, 3),
    "checkpointed": (lambda: Network(True), vectors, adam, 1),
    "attention": (Attention, sentences, adam, 1),
    "recurrent": (Recurrent, labelled_sentences, adam, 1),
    "frozen": (frozen, vectors, momentum, 1),
    "placed": (placed, vectors, adam, 1),
    "convolutional": (Convolutional, images, momentum, 1),
}


def see_model(model):
    WITNESS.label("parameters", *model.parameters(), *model.buffers())


def see_state(optimizer):
    WITNESS.label("optimizer_state", *(value for state in optimizer.state.values() for value in state.values()
                                       if torch.is_tensor(value)))


def train(name):
    make, load, optimize, accumulated = PROGRAMS[name]
    model = make().cuda()
    see_model(model)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(lambda parameter: WITNESS.label("gradients", parameter.grad))
    optimizer, loss_of = optimize(model), nn.CrossEntropyLoss()
    for step in range(STEPS):
        optimizer.zero_grad()
        for batch in range(accumulated):
            x, y = (tensor.cuda() for tensor in load())
            WITNESS.label("inputs", x, y)
            with torch.autograd.graph.saved_tensors_hooks(WITNESS.pack, lambda tensor: tensor):
                loss = loss_of(model(x), y)
            WITNESS.mark(f"forward {step}.{batch}")
            WITNESS.is_backward = True
            loss.backward()
            WITNESS.is_backward = False
            WITNESS.mark(f"backward {step}.{batch}")
        optimizer.step()
        see_state(optimizer)
        WITNESS.mark(f"step {step}")
    WITNESS.mark("last")
    return model, optimizer, x, y, loss


def see_scaler(scaler, step):
    """Its factor is made when it is first used."""
    if step:
        WITNESS.label("optimizer_state", scaler._scale, scaler._growth_tracker)


def train_scaled():
    """Mixed precision with scaled and clipped gradients that are kept; a validation after each step."""
    model = Network().cuda()
    see_model(model)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter: WITNESS.label("gradients", parameter.grad))
    optimizer, loss_of = momentum(model), nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler("cuda")
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        x, y = (tensor.cuda() for tensor in vectors())
        WITNESS.label("inputs", x, y)
        with torch.autograd.graph.saved_tensors_hooks(WITNESS.pack, lambda tensor: tensor), torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(x), y)
        see_scaler(scaler, step)
        WITNESS.mark(f"forward {step}")
        scaled = scaler.scale(loss)
        WITNESS.label("activations", scaled)
        scaled.backward()
        del scaled
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        WITNESS.mark(f"clipped {step}")
        scaler.step(optimizer)
        scaler.update()
        see_scaler(scaler, 1)
        see_state(optimizer)
        WITNESS.mark(f"step {step}")
        with torch.no_grad():
            result = model(x)
        WITNESS.label("outputs", result)
        WITNESS.mark(f"validated {step}")
    WITNESS.mark("last")
    return model, optimizer, x, y, loss, result, scaler


def fragment():
    """Every second of eight blocks is freed: what is requested then fits in none of the free ones."""
    def take(mib):
        tensor = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
        WITNESS.label("inputs", tensor)
        return tensor
    whole = take(100)
    del whole
    held = [take(10) for _ in range(8)]
    held = held[1::2]
    WITNESS.mark("fragmented")
    held.append(take(30))
    WITNESS.mark("last")
    return held


def capture():
    model = Network().cuda().eval()
    see_model(model)
    x = vectors()[0].cuda()
    WITNESS.label("inputs", x)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            model(x)
        torch.cuda.synchronize()
        WITNESS.mark("before")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = model(x)
    WITNESS.mark("captured")
    graph.replay()
    WITNESS.mark("last")
    return model, x, graph, result


def infer():
    model = Network().cuda().eval()
    see_model(model)
    results = []
    with torch.no_grad():
        for batch in range(4):
            x = vectors()[0].cuda()
            WITNESS.label("inputs", x)
            results.append(model(x))
            WITNESS.label("outputs", results[-1])
            WITNESS.mark(f"batch {batch}")
    WITNESS.mark("last")
    return model, x, results


if __name__ == "__main__":
    torch.manual_seed(1)
    if WITNESS.has_history:
        WITNESS.start()
    others = {"inference": infer, "scaled": train_scaled, "fragmented": fragment, "captured": capture}
    kept = others[sys.argv[1]]() if sys.argv[1] in others else train(sys.argv[1])
    torch.cuda.synchronize()
    if not WITNESS.has_history:
        print(json.dumps({"requested": WITNESS.end(*kept[:4])}))
        sys.exit()
    print(json.dumps({"owners": WITNESS.owners(), "free": WITNESS.free}))

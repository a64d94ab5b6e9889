#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Who keeps memory of Python: programs with known owners, from a variable of a module to the block, in Python's words; and
CPython's objects by type and by variable, against what the interpreter itself counts.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from environments import torch_python  # noqa: E402
from harness import *  # noqa: E402,F403
from pythons import find_all  # noqa: E402
from schema import expect_fits  # noqa: E402

N, BYTES = 60, 20000
ITEMS = f"[bytearray({BYTES}) for _ in range({N})]"

# What the program does, the names on the way from its module to the blocks, and the types with them.
PROGRAMS = {
    "a_list": (f"kept = {ITEMS}", ["__main__.kept"], ["list"]),
    "a_dict_of_lists": (f"kept = {{'train': {ITEMS}}}", ["__main__.kept", "__main__.kept['train']"], ["dict", "list"]),
    "an_attribute": (f"class Trainer:\n    def __init__(self):\n        self.step = 3\n        self.losses = {ITEMS}\nt = Trainer()",
                     ["__main__.t", "__main__.t.losses"], ["Trainer", "list"]),
    "a_slot": (f"class Trainer:\n    __slots__ = ('step', 'losses')\n    def __init__(self):\n        self.losses = {ITEMS}\nt = Trainer()",
               ["__main__.t", "__main__.t.losses"], ["Trainer", "list"]),
    "a_class": (f"class Registry:\n    entries = (1, {ITEMS})", ["__main__.Registry", "__main__.Registry.entries", "__main__.Registry.entries[1]"],
                ["type", "tuple", "list"]),
    "a_closure": (f"def make():\n    held = {ITEMS}\n    return lambda: held\ncall = make()",
                  ["__main__.call", "__main__.call.__closure__", "__main__.call.__closure__[0]", "__main__.call.__closure__[0].cell_contents"],
                  ["function", "tuple", "cell", "list"]),
    "a_deque": (f"from collections import deque\nqueue = deque(bytearray({BYTES}) for _ in range({N}))", ["__main__.queue"], ["collections.deque"]),
    "a_set": (f"seen = {{bytes({BYTES} + i) for i in range({N})}}", ["__main__.seen"], ["set"]),
    "a_named_tuple": (f"from collections import namedtuple\nPoint = namedtuple('Point', 'x y')\np = Point(1, {ITEMS})",
                      ["__main__.p", "__main__.p[1]"], ["Point", "list"]),
    "objects_in_a_list": (f"class Node:\n    def __init__(self):\n        self.data = bytearray({BYTES})\nnodes = [Node() for _ in range({N})]",
                          ["__main__.nodes", "__main__.nodes[K]", "__main__.nodes[K].data"], ["list", "Node", "bytearray"]),
    "another_module": (f"import torsh_owner_module\ntorsh_owner_module.entries.extend({ITEMS})", ["torsh_owner_module.entries"], ["list"]),
    "a_dict_with_a_key_of_modules": (f"kept = {{'__name__': 'other', 'of': {ITEMS}}}", ["__main__.kept", "__main__.kept['of']"], ["dict", "list"]),
    "a_nested_dict": (f"config = {{'a': {{'b': {{'c': {ITEMS}}}}}}}",
                      ["__main__.config", "__main__.config['a']", "__main__.config['a']['b']", "__main__.config['a']['b']['c']"], ["dict", "dict", "dict", "list"]),
}


def number_of_most(report):
    """Of the row with most bytes, as --why numbers them."""
    rows = report["leaks"] + report["freed_at_exit"]["large"]
    return 1 + max(range(len(rows)), key=lambda i: rows[i]["bytes"])


def without_numbers(name):
    """The number of the block that was chosen may be any."""
    return name and "".join("[K]" if i % 2 and part.isdigit() else f"[{part}]" if i % 2 else part
                            for i, part in enumerate(name.replace("]", "[").split("[")))


def expect_owner(python, text, names, types):
    folder = scratch("program")
    (folder / "torsh_owner_module.py").write_text("entries = []\n")
    path = folder / "program.py"
    path.write_text(text + "\n")
    result, output = record([python, path])
    expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
    report = leaks(output)
    expect_fits("leaks", report)
    way = read_report("leaks", output, "--limit", "0", "--why", str(number_of_most(report)))
    expect_fits("leaks-why", way)
    why = way["why"]
    module = names[0].partition(".")[0]
    expect_equal([(step["kind"], step["name"]) for step in why[:2]], [("modules", "sys.modules"), ("module", module)], "where the way begins")
    found = why[2:2 + len(names)]
    # Numbers that the program has written count.
    expect_equal([without_numbers(step["name"]) for step in found], [without_numbers(name) for name in names], "names on the way")
    expect_equal([step["type"] for step in found], types, "types on the way")
    assert BYTES <= why[-1]["bytes"] <= BYTES + N + 64 and why[-1]["stack"] is not None or why[-1]["type"] == "bytes", why[-1]
    return report


for _name, (_text, _names, _types) in PROGRAMS.items():
    add_case(f"{_name}_is_named", expect_owner, sys.executable, _text, _names, _types)

ALL = {"an_attribute", "a_slot", "a_closure", "a_nested_dict"}
for _python in find_all():
    for _name in sorted(ALL):
        add_case(f"{_python.name}_{_name}_is_named", expect_owner, _python.path, *PROGRAMS[_name])

COUNTED = f"""
import json, sys
class Node:
    def __init__(self, i):
        self.number, self.name = i + 100000, "node %d" % i
class Empty:
    __slots__ = ()
kept = [Node(i) for i in range(20000)]
plain = [{{"n": i + 1000000}} for i in range(30000)]
empty = [Empty() for _ in range(10000)]
garbage = [[] for _ in range(500)]
import gc
gc.disable()
class Loop: pass
for _ in range(700):
    a = Loop()
    a.a = a
del a, garbage
def rounded(o):
    return (sys.getsizeof(o) + 15) // 16 * 16
sizes = {{
    "plain": sys.getsizeof(plain) + sum(rounded(d) + rounded(d["n"]) for d in plain),
    "empty": sys.getsizeof(empty) + sum(rounded(e) for e in empty),
}}
print(json.dumps(sizes))
"""


def expect_counts(python):
    path = scratch("program") / "counted.py"
    path.write_text(COUNTED)
    bare = run([python.path, path])
    result, output = record([python.path, path])
    expect_equal((result.returncode, result.stdout, result.stderr), (0, bare.stdout, b""), "status and output, as without")
    sizes = json.loads(result.stdout)
    heap, = leaks(output)["python"]
    types = {row["name"]: row for row in heap["types"]}
    expect_equal((types["Node"]["objects"], types["Node"]["lost_objects"]), (20000, 0), "instances")
    expect_equal((types["Empty"]["objects"], types["Empty"]["lost_objects"]), (10000, 0), "instances without attributes")
    # Addresses of a few are still where calls have left them: what may be a pointer counts as one.
    assert 650 <= types["Loop"]["lost_objects"] <= 700, types["Loop"]
    expect_equal(types["Loop"]["objects"] + types["Loop"]["lost_objects"], 700, "garbage in cycles")
    variables = {row["name"]: row for row in heap["variables"]}
    for name, size in sizes.items():
        found = variables[f"__main__.{name}"]
        assert abs(found["bytes"] - size) <= 0.02 * size, (name, found, size)
        assert found["own"], found
    # Stale addresses lead to a few in fewer steps.
    assert 2 * 30000 - 20 <= variables["__main__.plain"]["objects"] <= 2 * 30000 + 1, variables["__main__.plain"]
    assert heap["pool_used_bytes"] <= heap["pool_bytes"], heap
    assert sum(row["bytes"] + row["lost_bytes"] for row in heap["types"]) <= heap["bytes"], heap["bytes"]
    text = torsh("leaks", output)
    assert "Variables of Python that held most:" in text and "__main__.plain: list" in text, text
    assert "No leaks." in text or "Nothing is lost." in text, text[:300]


for _python in find_all():
    add_case(f"{_python.name}_has_as_many_objects_as_it_counts", expect_counts, _python)

CLEAN = "import json, collections, threading\nprint(len(json.dumps(list(range(1000)))))\n"


@case
def a_program_that_keeps_little_shows_no_variables():
    _, output = record([sys.executable, "-c", CLEAN])
    assert "Variables" not in torsh("leaks", output), torsh("leaks", output)
    assert not [row for row in leaks(output)["python"][0]["variables"] if row["own"] and row["bytes"] > 1 << 20]


GRAPH = """
import torch
class Trainer:
    def __init__(self):
        self.losses = []
trainer = Trainer()
weight = torch.randn(256, 256, requires_grad=True)
for _ in range(40):
    batch = torch.randn(256, 256)
    out = (weight * batch).relu()
    trainer.losses.append(out.sum())
"""


@case
@needs("torch")
def a_loss_that_keeps_its_graph_is_named_with_its_nodes():
    path = scratch("program") / "graph.py"
    path.write_text(GRAPH)
    _, output = record([torch_python(), path])
    report = leaks(output)
    variables = {row["name"]: row for row in report["python"][0]["variables"]}
    # Each of 40 steps keeps the batch, which the product needs, and the result that relu needs; the last is a variable's.
    assert 2 * 35 <= variables["__main__.trainer"]["bytes"] / (256 * 256 * 4) <= 2 * 40 + 1, variables["__main__.trainer"]
    why = read_report("leaks", output, "--limit", "0", "--why", str(number_of_most(report)))["why"]
    names, types = [step["name"] for step in why], [step["type"] for step in why]
    expect_equal([without_numbers(name) for name in names[:5]],
                 ["sys.modules", "__main__", "__main__.trainer", "__main__.trainer.losses", "__main__.trainer.losses[K]"], "names")
    expect_equal(types[4:6], ["Tensor", "c10::TensorImpl"], "the loss")
    assert "torch::autograd::generated::SumBackward0" in types and "torch::autograd::generated::ReluBackward0" in types, types
    expect_equal(types[-3:], ["c10::TensorImpl", "c10::StorageImpl", None], "the tensor, its storage, and its memory")
    expect_equal(why[-1]["bytes"], 256 * 256 * 4, "bytes of the block")


main()

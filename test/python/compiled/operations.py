# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What each C++ kernel of torch.compile computes by Inductor's own metadata, before it makes code of it: the operations of its
loops' bodies on floating-point numbers, times the sizes of these. What several nodes of one kernel compute alike counts once.
"""

import collections

import sympy
import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.virtualized import V

NOTHING = {"to_dtype", "to_dtype_bitcast", "load_seed", "logical_and", "logical_or", "logical_not", "logical_xor", "bitwise_and",
           "bitwise_or", "bitwise_not", "bitwise_xor", "and_", "or_", "check_bounds", "isnan", "isinf", "signbit"}
RANDOM = {"rand", "randn"}
BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge"} | {name for name in NOTHING if name.startswith(("logical", "is"))}
EACH = {"fma": 2, "welford_reduce": 4}

Value = collections.namedtuple("Value", "dtype key")
counted = {}  # by the name under which PyTorch records the kernel's calls; None: its sizes are not numbers


def key_of(value):
    return value.key if isinstance(value, Value) else repr(value)


class Operations(DefaultHandler):
    """The operations of one node, after those of others in its kernel."""

    def __init__(self, sizes, seen, stored):
        self.sizes, self.seen, self.stored, self.n = sizes, seen, stored, 0

    def see(self, name, key):
        if (key, self.sizes) not in self.seen:
            self.n += EACH.get(name, 1)
        self.seen.add((key, self.sizes))

    def load(self, name, index):
        key = ("load", name, repr(index), self.sizes)
        return self.stored.get(key) or Value(V.graph.get_dtype(name), key)

    def store(self, name, index, value, mode=None):
        if mode == "atomic_add" and value.dtype.is_floating_point:
            self.n += 1
        self.stored["load", name, repr(index), self.sizes] = value

    def store_reduction(self, *arguments):
        pass

    def reduction(self, dtype, src_dtype, kind, value):
        key = ("reduction", kind, key_of(value))
        if src_dtype.is_floating_point:
            self.see(kind, key)
        return tuple(Value(dtype, (key, i)) for i in range(3)) if kind.startswith("welford") else Value(dtype, key)

    def constant(self, value, dtype):
        return Value(dtype, ("constant", value, dtype))

    def index_expr(self, expression, dtype):
        return Value(dtype, ("index", repr(expression), dtype))

    value_expr = index_expr

    def to_dtype(self, value, dtype, *arguments, **named):
        return Value(dtype, ("to", value.key, dtype))

    def indirect_indexing(self, value, *arguments, **named):
        return sympy.Symbol(f"at{abs(hash(value.key))}")

    def masked(self, mask, body, other):
        return body()

    def _default(self, name, arguments, named):
        types = [value.dtype for value in arguments if isinstance(value, Value)]
        key = (name, *map(key_of, arguments), repr(named))
        floating = [dtype for dtype in types[name == "where":] if dtype.is_floating_point]
        if name in RANDOM:
            return Value(torch.float32, key)
        if floating and name not in NOTHING:
            self.see(name, key)
        if name in BOOLEAN:
            return Value(torch.bool, key)
        return Value(floating[0] if floating else types[-1] if types else torch.int64, key)


def leaves(nodes):
    for node in nodes:
        inner = getattr(node, "snodes", None) or getattr(node, "outer_fused_nodes", None)
        yield from leaves(inner) if inner else [node]


def count(nodes):
    n, seen, stored = 0, set(), {}
    for node in leaves(nodes):
        sizes = [size for group in node._sizes for size in group]
        if not all(sympy.sympify(size).is_number for size in sizes):
            return None
        operations = Operations(repr(node._sizes), seen, stored)
        with V.set_ops_handler(operations):
            node._body(*[[sympy.Symbol(f"p{i}_{k}") for k in range(len(group))] for i, group in enumerate(node._sizes)])
        n += operations.n * int(sympy.prod(sizes))
    return n


def watch():
    """From here on, `counted` has the kernels that Inductor makes."""
    define = CppScheduling.define_kernel

    def define_kernel(self, source, nodes, kernel_args=None):
        name = define(self, source, nodes, kernel_args)
        counted[f"graph_{V.graph.graph_id}_{name}"] = count(nodes)
        return name

    CppScheduling.define_kernel = define_kernel

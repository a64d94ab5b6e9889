# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A torch package as small as can be, over libtorch.cc: tensors without contents, operators that do nothing."""

import ctypes
import contextlib
import pathlib
import types
import weakref  # noqa: F401

from torch import _C  # noqa: F401

_library = ctypes.CDLL(str(pathlib.Path(__file__).resolve().parent.parent / "libtorch_cpu.so"))
_library.stand_in_thread.restype = _library.stand_in_sequence.restype = ctypes.c_uint64
_library.stand_in_tensor.restype = _library.stand_in_allocate.restype = _library.stand_in_begin.restype = ctypes.c_void_p
uint8, int64, float32, float64, bool = 0, 4, 6, 7, 11
_BOOL = type(True)
_DEVICES = {"cpu": 0, "cuda": 1, "meta": 14}
FUNCTION, BACKWARD, USER = 0, 1, 7


class Tensor:
    def __init__(self, sizes, strides, dtype, device, requires_grad=False):
        self.sizes, self.strides, self.dtype, self.device, self.requires_grad = sizes, strides, dtype, device, requires_grad
        self.grad_fn = None
        n = len(sizes)
        self.handle = _library.stand_in_tensor(n, (ctypes.c_int64 * n)(*sizes), (ctypes.c_int64 * n)(*strides), dtype,
                                               _DEVICES[device])

    def t(self):
        return Tensor(self.sizes[::-1], self.strides[::-1], self.dtype, self.device)


def _push(value):
    if isinstance(value, Tensor):
        _library.stand_in_push_tensor(ctypes.c_void_p(value.handle))
    elif value is Tensor:
        _library.stand_in_push_undefined()
    elif value is None:
        _library.stand_in_push_none()
    elif isinstance(value, _BOOL):
        _library.stand_in_push_bool(value)
    elif isinstance(value, int):
        _library.stand_in_push_integer(ctypes.c_int64(value))
    elif isinstance(value, float):
        _library.stand_in_push_double(ctypes.c_double(value))
    else:
        _library.stand_in_open_list()
        for item in value:
            _push(item)
        _library.stand_in_close_list()


def call(name, *arguments, scope=FUNCTION, makes_node=False, inside=None, overload="", forward=(0, 0)):
    for argument in arguments:
        _push(argument)
    record = ctypes.c_void_p(_library.stand_in_begin(name.encode(), overload.encode(), scope, makes_node,
                                                     *map(ctypes.c_uint64, forward)))
    if inside:
        inside()
    _library.stand_in_end(record, scope)


def zeros(*sizes, dtype=float32, device="cpu", requires_grad=False):
    strides = [1]
    for size in sizes[:0:-1]:
        strides.insert(0, strides[0] * size)
    call("aten::zeros", list(sizes), None, None, None)
    return Tensor(list(sizes), strides[:len(sizes)], dtype, device, requires_grad)


def _with_node(tensor, operator, node, *arguments):
    """The operator's result for the tensor; its grad_fn runs backward."""
    forward = _library.stand_in_thread(), _library.stand_in_sequence()
    call(operator, tensor, *arguments, makes_node=tensor.requires_grad, overload="Tensor")
    result = Tensor(tensor.sizes, tensor.strides, tensor.dtype, tensor.device)
    result.grad_fn = lambda gradient: call(node, gradient, scope=BACKWARD, forward=forward)
    return result


def mul(one, other):
    return _with_node(one, "aten::mul", "MulBackward0", other)


def add(one, other, alpha=1):
    return _with_node(one, "aten::add", "AddBackward0", other, alpha)


def sum(tensor, dims, keepdim):
    call("aten::sum", tensor, dims, keepdim, None)


def cat(tensors):
    call("aten::cat", tensors, 0)


ops = types.SimpleNamespace(aten=types.SimpleNamespace(add=add, sum=sum))


@contextlib.contextmanager
def _record_function(name):
    call(name, scope=USER, inside=lambda: None)
    yield


autograd = types.SimpleNamespace(profiler=types.SimpleNamespace(record_function=_record_function))

from torch import nn  # noqa: E402,F401
import torch.nn.modules.module  # noqa: E402,F401

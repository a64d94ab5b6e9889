# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Counts the FLOPs of a function at given shapes, without computing anything."""


def flops(function: "object", *shapes: object, dtype: object = None, backward: bool = False, **named: object) -> int:
    """
    Returns what PyTorch's FlopCounterMode counts of function(*shapes), without memory or time for the tensors.

    A shape is a sequence of ints, for a tensor of dtype, PyTorch's default unless given; (sequence, dtype), as
    ((8, 128), "int64"); or a tensor, of which only shape, type and device count. What else is given, and named, is passed on.
    function: a module, or what else can be called; its tensors are not read. Tensors are on the device of the module's first
    parameter, else on the CPU. backward: also of the backward pass of the sum of the results.

    PyTorch is imported by this call. What depends on the values of tensors can't be counted: PyTorch raises. Where the
    program is recorded, operators of this call are recorded as any others.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_flatten, tree_map_only
    from torch.utils.flop_counter import FlopCounterMode

    parameter = next(function.parameters(), None) if isinstance(function, torch.nn.Module) else None
    device = parameter.device if parameter is not None else torch.device("cpu")
    counter = FlopCounterMode(display=False)
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        inputs = [_input(torch, shape, dtype, device) for shape in shapes]
        inputs, named = tree_map_only(torch.Tensor, lambda tensor: _fake(fake, tensor), (inputs, named))
        run, gradients = _without_values(torch, fake, function)
        with gradients if backward else torch.no_grad(), counter:
            output = run(*inputs, **named)
            if backward:
                _backward(torch, tree_flatten(output)[0])
    return counter.get_total_flops()


def _fake(fake, tensor):
    return tensor if type(tensor).__name__ == "FakeTensor" else fake.from_tensor(tensor)


def _is_shape(value):
    return isinstance(value, (tuple, list)) and all(isinstance(size, int) and not isinstance(size, bool) for size in value)


def _input(torch, shape, dtype, device):
    if _is_shape(shape):
        return torch.empty(tuple(shape), dtype=dtype, device=device)
    if isinstance(shape, tuple) and len(shape) == 2 and _is_shape(shape[0]):
        kind = getattr(torch, shape[1]) if isinstance(shape[1], str) else shape[1]
        if isinstance(kind, torch.dtype):
            return torch.empty(tuple(shape[0]), dtype=kind, device=device)
    return shape


def _without_values(torch, fake, function):
    """Returns the function with tensors that have no values, and a context in which gradients are computed."""
    if not isinstance(function, torch.nn.Module):
        return function, torch.enable_grad()
    state = {name: fake.from_tensor(tensor) for kind in (function.named_parameters, function.named_buffers)
             for name, tensor in kind()}
    return (lambda *arguments, **named: torch.func.functional_call(function, state, arguments, named)), torch.enable_grad()


def _backward(torch, outputs):
    wanted = [output for output in outputs if isinstance(output, torch.Tensor) and output.requires_grad]
    if not wanted:
        raise ValueError("no result of the function needs a gradient: there is no backward pass")
    torch.autograd.backward([output.sum() for output in wanted])

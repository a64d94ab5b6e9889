# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Run by collectors/torch_python.c inside the program's own interpreter, in a namespace of its own, when torch's
# extension module is about to be loaded. It may not import anything, print, or raise into the program. What it calls
# without defining it is the agent's: observe, begin, expect, fitted, finish, label, push, pop, note, wants_modules.

import sys


def when_imported(spec, then):
    """
    Call when the module is complete: the import system says so by its spec, in the importing thread, before the
    importing statement returns. Half-way there torch's tensors can't be made: it would crash.
    """
    own_class = type(spec)

    class Watched(own_class):
        @property
        def _initializing(self):
            return True

        @_initializing.setter
        def _initializing(self, value):
            self.__class__ = own_class
            self._initializing = value
            then()

    spec.__class__ = Watched


def look_at_torch():
    torch = sys.modules.get("torch")
    if torch is None or not observe():
        return
    try:
        calibrate(torch)
        if wants_modules():
            name_modules(torch)
    except Exception as error:
        note("torch: modules and inputs of operators are not known: " + repr(error)[:200])


# ---- where things lie: see shim/torch_calibration.def ----

def run(step, operator, *arguments, **named):
    if not expect(step):
        return False
    try:
        operator(*arguments, **named)
    except Exception:
        pass
    return fitted()


def calibrate(torch):
    if not begin():
        return
    try:
        run_shapes(torch) and run_rest(torch)
    finally:
        is_known = finish()
    if not is_known:
        note("torch: operators have names and times only: their inputs were not found where they were looked for")


def run_shapes(torch):
    zeros, mul = torch.zeros, torch.mul
    turned, many = zeros(3, 5).t(), zeros(1, 2, 1, 3, 1, 4)
    return (run("inputs", mul, zeros(3, 5), zeros(1, 5)) and run("inputs again", mul, zeros(2, 4, 6), zeros(4, 1))
            and run("strides", mul, turned, turned) and run("many dimensions", mul, many, many))


def run_rest(torch):
    zeros, mul = torch.zeros, torch.mul
    plain = zeros(3, 5)
    for name in ("uint8", "int64", "float32", "float64", "bool"):
        tensor = zeros(3, 5, dtype=getattr(torch, name))
        run(name, mul, tensor, tensor)
    for device in ("cpu", "meta", "cpu", "meta"):
        tensor = zeros(3, 5, device=device)
        run(device, mul, tensor, tensor)
    tracked = zeros(3, 5, requires_grad=True)
    run("sequence", mul, tracked, plain)
    run("sequence again", mul, tracked, plain)
    run("integer", torch.add, plain, plain, alpha=3)
    run("double", torch.add, plain, plain, alpha=0.5)
    run("list", torch.sum, zeros(2, 4, 6), (2, 0), True)
    run("list again", torch.sum, zeros(2, 4, 6), (2, 0), False)
    run("tensors", torch.cat, [plain, zeros(3, 5)])


# ---- names of modules ----

def name_modules(torch):
    modules = torch.nn.modules.module
    names, references = {}, {}
    reference = sys.modules["weakref"].ref
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

    def learn(module):
        """Labels for a module that was not met before, which makes it a root, and for all below it."""
        root = type(module).__name__
        for path, part in module.named_modules(prefix=root):
            key = id(part)
            names[key] = label(path + ":" + type(part).__name__)
            references[key] = reference(part, lambda _, key=key: (names.pop(key, None), references.pop(key, None)))
        return names.get(id(module)) or label(root + ":" + root)

    def before(module, arguments):
        if not is_compiling():
            push(names.get(id(module)) or learn(module))

    def after(module, arguments, result):
        if not is_compiling():
            pop()

    handles = [modules.register_module_forward_pre_hook(before)]
    try:
        handles.append(modules.register_module_forward_hook(after, always_call=True))
    except TypeError:  # torch 1: a module that raises stays open
        handles.append(modules.register_module_forward_hook(after))
    hide_hooks(modules, {handle.id for handle in handles})


def hide_hooks(modules, own):
    """torch.compile warns of hooks that fire for its wrappers too, which these may: it is to ask for others."""
    if not hasattr(modules, "_has_any_global_hook"):
        return
    tables = [table for name, table in vars(modules).items() if name.startswith("_global_") and isinstance(table, dict)]
    modules._has_any_global_hook = lambda: any(key not in own for table in tables for key in table)


when_imported(sys.modules["torch"].__spec__, look_at_torch)

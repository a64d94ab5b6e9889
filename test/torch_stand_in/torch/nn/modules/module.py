# SPDX-License-Identifier: Apache-2.0 OR MIT
import types

_global_forward_pre_hooks = {}
_global_forward_hooks = {}


def _register(table, hook):
    table[id(hook)] = hook
    return types.SimpleNamespace(id=id(hook))


def register_module_forward_pre_hook(hook):
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, always_call=False):
    assert always_call
    return _register(_global_forward_hooks, hook)


def _has_any_global_hook():
    return bool(_global_forward_pre_hooks or _global_forward_hooks)


class Module:
    def __init__(self, **children):
        self.children = children

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}")

    def __call__(self, *arguments):
        for hook in _global_forward_pre_hooks.values():
            assert hook(self, arguments) is None
        try:
            result = self.forward(*arguments)
        finally:
            for hook in _global_forward_hooks.values():
                assert hook(self, arguments, None) is None
        return result

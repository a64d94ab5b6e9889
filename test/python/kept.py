# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
kept.py FOLDER: makes classes and modules, again and again, as a program does that leaks them, and ends at once, when they
are all alive. FOLDER is where it writes the module that it imports.
"""
import decimal  # noqa: F401  (what the import of a module keeps is no leak)
import importlib
import os
import sys
import types

CLASSES, MODULES, NAMES = 3000, 300, 400_000
kept = []


def make_classes():
    for _ in range(CLASSES):
        kept.append(type("Class", (), {}))


def import_modules(name):
    for _ in range(MODULES):
        kept.append(importlib.import_module(name))
        del sys.modules[name]


def run_modules(source):
    for i in range(MODULES):
        module = types.ModuleType(f"made_{i}")
        exec(compile(source, f"made_{i}.py", "exec"), vars(module))
        kept.append(module)


def intern_names():
    """The interpreter has one table of them."""
    for i in range(NAMES):
        kept.append(sys.intern(f"name {i}"))


# Texts that are too large for Python's own allocator.
functions = "".join(f"def function_{i}(a):\n    return a, '{i} {'a long text, ' * 150}'\n\n\n" for i in range(20))
with open(os.path.join(sys.argv[1], "imported_again.py"), "w") as file:
    file.write(functions)
sys.path.insert(0, sys.argv[1])
make_classes()
import_modules("imported_again")
run_modules(functions)
intern_names()
os._exit(0)

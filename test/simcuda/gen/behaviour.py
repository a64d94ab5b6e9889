# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What functions of a library do that all do much the same: read from LIBRARY/functions.txt, written as C by wrappers.py.

A line is `PATTERN: ACTION; ACTION`, PATTERN a regular expression for names of functions. Of a parameter several names may be
given, a|b, as toolkits differ. The actions:
    create P            *P is a new object (blas/object.h)
    destroy P           an object's end
    accept              nothing: what is set has no effect on the simulation
    stream P            kernels of the handle, which is the first parameter, go to stream P from now on
    put P VALUE         *P = VALUE, on the host
    launch NAME         a kernel, on the handle's stream; \\1 is what the pattern's first group holds
    zero P [COUNT]      so many ints on the device are 0 behind the kernel: a result code; none where P is NULL
"""

import re


def chosen(names, parameters, function):
    known = [name for _, name in parameters]
    found = [name for name in names.split("|") if name in known]
    if not found:
        raise SystemExit(f"behaviour.py: {function} has no parameter {names}: {' '.join(known)}")
    return found[0]


def statements(library, action, parameters, function):
    verb, *words = action.split()
    handle = parameters[0][1]
    failed = f"return {library.status_prefix}EXECUTION_FAILED;"
    if verb == "accept":
        return []
    if verb == "launch":
        return [f"if (!{handle})", f"\treturn {library.status_prefix}NOT_INITIALIZED;",
                f"if (blas_object_launch((void *){handle}, \"{words[0]}\"))", f"\t{failed}"]
    name = chosen(words[0], parameters, function)
    if verb == "create":
        return [f"if (!(*(void **){name} = blas_object_create()))", f"\treturn {library.status_prefix}ALLOC_FAILED;"]
    if verb == "destroy":
        return [f"blas_object_destroy((void *){name});"]
    if verb == "stream":
        return [f"blas_object_set_stream((void *){handle}, {name});"]
    if verb == "put":
        return [f"*{name} = {words[1]};"]
    if verb == "zero":
        return [f"if (blas_object_zero((void *){handle}, (void *){name}, {words[1] if words[1:] else 1}))", f"\t{failed}"]
    raise SystemExit(f"behaviour.py: {function}: what is {verb}?")


class Behaviours:
    """Of one library. A pattern that fits no function is one of another toolkit."""

    def __init__(self, library, path):
        self.library, self.lines = library, []
        if path.exists():
            for line in path.read_text().splitlines():
                pattern, separator, actions = line.partition(": ")
                if separator and not line.startswith("#"):
                    self.lines.append((re.compile(pattern), actions))

    def body_of(self, function, parameters):
        """The lines of C, or None where the table has nothing for it."""
        for pattern, actions in self.lines:
            match = pattern.fullmatch(function)
            if match:
                return [statement for action in match.expand(actions).split(";")
                        for statement in statements(self.library, action.strip(), parameters, function)]
        return None

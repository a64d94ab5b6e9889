# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The operators among the events of a recording."""

NO_SEQUENCE = 2**64 - 1


class Operator:
    """A call, from its beginning to its end; at_ns, end_ns, children and parent as they nest in its thread."""

    def __init__(self, event, parent):
        self.__dict__.update(event)
        self.parent, self.children, self.end_ns = parent, [], None
        self.sequence = None if event["sequence"] == NO_SEQUENCE else event["sequence"]

    def shapes(self):
        """What torch.profiler calls input_shapes: the sizes of tensors, and [] for whatever else an argument is."""
        return None if self.inputs is None else [shape(text) for text in split(self.inputs)]


def split(inputs, separator=";"):
    """The pieces of a text that are not inside of brackets."""
    if inputs == "()":
        return []
    pieces, depth = [""], 0
    for character in inputs:
        depth += character in "[({"
        depth -= character in "])}"
        if character == separator and not depth:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def shape(text):
    """The sizes of a tensor, [] for anything else, a list of tensors included."""
    if text.startswith("{") or "[" not in text:
        return []
    sizes = text[text.index("[") + 1:text.index("]")]
    return [int(size) for size in sizes.split(",")] if sizes else []


def operators(found):
    """The operators among events, in the order of their beginnings. Those that are never ended have end_ns None."""
    stacks, opened, result = {}, {}, []
    for event in found:
        if event["event"] == "op_begin":
            stack = stacks.setdefault(event["thread"], [])
            operator = Operator(event, stack[-1] if stack else None)
            if stack:
                stack[-1].children.append(operator)
            stack.append(operator)
            opened[event["record"]] = operator
            result.append(operator)
        elif event["event"] == "op_end":
            operator = opened.pop(event["record"])
            operator.end_ns = event["at_ns"]
            stack = stacks[operator.thread]
            if operator in stack:
                stack.remove(operator)
    return result


def without_twins(ours):
    """torch.profiler leaves out a call if its parent has the same name and no other child."""
    twins = set()
    while True:
        found = [operator for operator in ours if operator not in twins and operator.parent
                 and operator.parent.name == operator.name and len(operator.parent.children) == 1]
        if not found:
            return [operator for operator in ours if operator not in twins]
        for operator in found:
            twins.add(operator)
            operator.parent.children = operator.children
            for child in operator.children:
                child.parent = operator.parent

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
%load_ext torsh, then %%torsh leaks|peak|ops above a cell: reports what the cell leaves allocated, by line, how far it
raises the heap, or its PyTorch operators. The kernel must run under the agent: `torsh run jupyter lab`.
"""

import html

import torsh

_REPORTS = ("leaks", "peak", "ops")
_ROWS_MAX = 15
_STEPS_FROM = 10**9  # cells are numbered as steps from here on, above the steps of a training in the notebook
_n_cells = 0


class Table:
    """A sentence and rows, as HTML in a notebook and as text in a terminal."""

    def __init__(self, sentence, heads=(), rows=()):
        self.sentence, self.heads, self.rows = sentence, heads, rows[:_ROWS_MAX]
        self.n_left_out = len(rows) - len(self.rows)

    def _lines(self):
        return [self.sentence, *([f"and {self.n_left_out} more"] if self.n_left_out else [])]

    def _repr_html_(self):
        def cells(kind, row):
            return "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in row)

        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in self.rows)
        table = f"<table><thead><tr>{cells('th', self.heads)}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        first, *rest = (f"<p>{html.escape(line)}</p>" for line in self._lines())
        return first + table + "".join(rest)

    def __repr__(self):
        first, *rest = self._lines()
        return "\n".join([first, *("  ".join(map(str, row)) for row in (self.heads, *self.rows) if self.rows), *rest])


def _size(n):
    for unit in ("B", "KiB", "MiB"):
        if abs(n) < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"


def _operators(step):
    recording = torsh.snapshot()
    operators = recording.read("ops", limit=0, steps=step)["ops"] if recording else []
    return Table(f"{len(operators)} operators of PyTorch ran in this cell.", ("self ms", "calls", "operator"),
                 [(f"{row['self_cpu_ns'] / 1e6:.3f}", row["calls"], row["name"]) for row in operators])


def _memory(kind, window):
    sentence = (f"The heap rose by {_size(window.peak_bytes)} in this cell; {_size(window.stayed_bytes)} in "
                f"{window.stayed_blocks} blocks stayed.")
    rows = [] if kind == "peak" else [(_size(row["bytes"]), row["blocks"], f"{row['file']}:{row['line']}", row["function"])
                                      for row in window.lines]
    return Table(sentence, ("stayed", "blocks", "line", "function"), rows)


def run_cell(line, cell, shell):
    """Run a cell and display the report of its window."""
    global _n_cells
    kind = line.strip() or "leaks"
    if kind not in _REPORTS:
        raise ValueError(f"%%torsh {kind}: there are {', '.join(_REPORTS)}")
    _n_cells += 1
    step = _STEPS_FROM + 2 * _n_cells
    if kind == "ops":
        torsh.step(step)
    with torsh.memory("cell", lines=kind == "leaks") as window:
        result = shell.run_cell(cell)
    if kind == "ops":
        torsh.step(step + 1)
    result.raise_error()
    from IPython.display import display

    if not torsh.is_there():
        display(Table("This kernel is not recorded: start it by `torsh run jupyter lab`."))
    else:
        display(_operators(step) if kind == "ops" else _memory(kind, window))


def load(shell):
    """Called by %load_ext torsh."""
    shell.register_magic_function(lambda line, cell: run_cell(line, cell, shell), "cell", "torsh")

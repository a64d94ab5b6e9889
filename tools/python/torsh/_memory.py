# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Measures this process's heap, and pauses, saves and exports its session.

Figures are exact at the call: it waits until the recording has all that the process did before, some milliseconds.
They count bytes that the process requested of malloc. CPython takes small objects out of arenas that it maps: with
PYTHONMALLOC=malloc each of them counts, too. Without the agent figures are 0, and everything else is None or empty.
"""

import ctypes

TYPE_CHECKING = False  # as in typing, without importing it
if TYPE_CHECKING:
    from torsh._recording import Recording

_MEMORY, _BEGIN, _END, _RESET, _PAUSE, _RESUME = 1, 2, 3, 4, 5, 6
_EALREADY = 114
_WITH_SITES = 1


class _Memory(ctypes.Structure):
    """struct torsh_memory of torsh.h."""

    _fields_ = [("size", ctypes.c_uint32), ("window", ctypes.c_uint32), ("current_bytes", ctypes.c_uint64),
                ("current_blocks", ctypes.c_uint64), ("begin_bytes", ctypes.c_uint64), ("begin_blocks", ctypes.c_uint64),
                ("peak_bytes", ctypes.c_uint64)]


# Other threads may run while a call waits for the writer: the GIL is released.
_entry = getattr(ctypes.CDLL(None), "torsh_v1_call", None)
if _entry is not None:
    _entry.restype, _entry.argtypes = ctypes.c_int, (ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(_Memory))
_n_windows = 0


def _call(verb, window=0, memory=None):
    """Returns 0 or -errno, and fills memory."""
    return _entry(verb, window, memory) if _entry is not None else -38


def _read(verb=_MEMORY):
    memory = _Memory(ctypes.sizeof(_Memory))
    _call(verb, 0, memory)
    return memory


def current_bytes() -> int:
    """Returns the bytes that are allocated in this process."""
    return _read().current_bytes


def peak_bytes() -> int:
    """Returns the maximum of current_bytes() since the process began, or since reset_peak()."""
    return _read().peak_bytes


def reset_peak() -> int:
    """Restart peak_bytes(), and return its old value. The recording's own peak stays."""
    return _read(_RESET).peak_bytes


def pause() -> bool:
    """
    Pause the recording in all processes of the session: what begins in the pause is left out, but for steps. Returns
    whether that changed anything.
    """
    return _call(_PAUSE) == 0


def resume() -> bool:
    """Resume the recording after pause(). Returns whether that changed anything."""
    return _call(_RESUME) == 0


def configure(**options: object) -> None:
    """
    Set the agent's variables for child processes started from now on: configure(with_stack=False,
    schedule="wait:1,active:3") sets TORSH_PROFILER_WITH_STACK=0 and TORSH_PROFILER_SCHEDULE; None removes one. This
    process is not affected: it read its variables at its start.
    """
    import os

    for name, value in options.items():
        variable = "TORSH_PROFILER_" + name.upper()
        if value is None:
            os.environ.pop(variable, None)
        elif isinstance(value, (list, tuple)):
            os.environ[variable] = ",".join(map(str, value))
        else:
            os.environ[variable] = str(int(value)) if isinstance(value, bool) else str(value)


def snapshot(path: object = None) -> "Recording | None":
    """
    Returns a recording of the session's current state, for any torsh command; the session goes on. Without a path it
    is in a temporary folder, which is removed with the returned object. Runs the torsh command as a child process.
    Returns None without the agent.
    """
    from torsh._recording import Recording, run_command

    if _call(_MEMORY, 0, _Memory(ctypes.sizeof(_Memory))):
        return None
    import os

    if path is not None:
        run_command("snapshot", os.getpid(), "-o", path)
        return Recording(path)
    import shutil
    import tempfile
    import weakref

    folder = tempfile.mkdtemp(prefix="torsh-snapshot-")
    recording = Recording(os.path.join(folder, "snapshot.torsh"))
    weakref.finalize(recording, shutil.rmtree, folder, ignore_errors=True)
    run_command("snapshot", os.getpid(), "-o", recording.path)
    return recording


def export(format: str, path: object) -> "str | None":
    """Export the session's current state in one of torsh export's formats. Returns the path; None without the agent."""
    recording = snapshot()
    return recording.export(format, path) if recording else None


def leaks_since(mark: str, min_bytes: int = 0) -> "list[dict]":
    """
    Returns what was allocated since the program set this mark and is still alive, by line: dictionaries with bytes,
    blocks, function, file, line and stack, the largest first. Empty without the agent.
    """
    recording = snapshot()
    return _lines(recording, min_bytes, since=mark) if recording else []


def _lines(recording, min_bytes=0, **window):
    import os

    return _by_line(recording.read("leaks", limit=0, pid=os.getpid(), min_bytes=min_bytes, **window)["leaks"])


def _peak_lines(recording, region):
    import os

    return _by_line(recording.read("peak", limit=0, pid=os.getpid(), region=region)["holders"])


def _by_line(sites):
    lines = {}
    for leak in sites:
        stack = leak["stack"]
        if any(_is_own(frame) for frame in stack):
            continue
        frame = _frame_of_user(stack)
        key = frame["file"], frame["line"], frame["function"]
        line = lines.setdefault(key, {"bytes": 0, "blocks": 0, "function": frame["function"], "file": frame["file"],
                                      "line": frame["line"], "stack": stack})
        line["bytes"] += leak["bytes"]
        line["blocks"] += leak["blocks"]
    return sorted(lines.values(), key=lambda line: -line["bytes"])


def _is_own(frame):
    """Returns whether the frame belongs to this package."""
    return frame.get("language") == "python" and frame["file"] in (__file__, __file__.replace("_memory", "_recording"))


def _frame_of_user(stack):
    """Returns the innermost Python frame outside of installed packages, else any Python frame, else any frame."""
    import sysconfig

    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    python = [frame for frame in stack if frame.get("language") == "python"]
    own = [frame for frame in python if not frame["file"].startswith((*installed, "<frozen"))]
    return next(iter(own or python or stack), {"file": None, "line": None, "function": None})


def _to_frame(lines):
    columns = {name: [line[name] for line in lines] for name in ("bytes", "blocks", "function", "file", "line")}
    for name in ("pandas", "polars"):
        try:
            return __import__(name).DataFrame(columns)
        except ImportError:
            pass
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


class memory:
    """
    A window over this process's heap: `with torsh.memory() as m:`. Afterwards m.peak_bytes is how far the heap rose
    above its size at the begin, m.stayed_bytes and m.stayed_blocks what it has more than then (negative: less),
    m.lines what was allocated in the window and is still there, by line, and m.peak_lines all that was alive when it
    was highest, by line. Windows may be nested and overlap; what other threads do counts. lines=False saves the
    snapshot that the lines are read from. Without the agent all are 0 and empty.
    """

    def __init__(self, name: "str | None" = None, lines: bool = True) -> None:
        global _n_windows
        _n_windows += 1
        self.name = f"{name or 'torsh.memory'} #{_n_windows}"
        self.peak_bytes = self.stayed_bytes = self.stayed_blocks = self.begin_bytes = self.end_bytes = 0
        self._memory, self._has_lines = _Memory(ctypes.sizeof(_Memory)), lines
        self._is_open, self._range = False, 0
        self._recording: "Recording | None" = None
        self._found: "list[dict] | None" = None
        self._found_at_peak: "list[dict] | None" = None

    def __enter__(self) -> "memory":
        if self._has_lines and _entry is not None:
            import torsh

            self._range = torsh.range_start(self.name)
        self._is_open = _call(_BEGIN, _WITH_SITES if self._range else 0, self._memory) == 0
        return self

    def __exit__(self, *error: object) -> None:
        window = self._memory
        if self._is_open and _call(_END, window.window, window) == 0:
            self.begin_bytes, self.end_bytes = window.begin_bytes, window.current_bytes
            self.peak_bytes = window.peak_bytes - window.begin_bytes
            self.stayed_bytes = window.current_bytes - window.begin_bytes
            self.stayed_blocks = window.current_blocks - window.begin_blocks
        if self._range:
            import torsh

            torsh.range_end(self._range)
            self._recording = snapshot()
        self._is_open, self._range = False, 0

    @property
    def lines(self) -> "list[dict]":
        """What stayed allocated, by line, the largest first: dictionaries with bytes, blocks, function, file, line, stack."""
        if self._found is None:
            self._found = _lines(self._recording, region=self.name) if self._recording else []
        return self._found

    @property
    def peak_lines(self) -> "list[dict]":
        """
        What was alive at the highest moment, by line, the largest first: dictionaries as of lines. Their bytes are
        begin_bytes + peak_bytes, less what this module itself holds.
        """
        if self._found_at_peak is None:
            self._found_at_peak = _peak_lines(self._recording, self.name) if self._recording else []
        return self._found_at_peak

    def frame(self, at_peak: bool = False) -> object:
        """
        m.lines, or m.peak_lines, without the stacks: a DataFrame of pandas or polars where one is installed, else
        dictionaries.
        """
        return _to_frame(self.peak_lines if at_peak else self.lines)

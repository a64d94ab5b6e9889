# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Regions, marks, values and steps of a Python program in its torsh recording, and recordings read back.

    import torsh

    for i, batch in enumerate(loader):
        torsh.step(i)
        with torsh.range("forward"):
            loss = model(batch)
        torsh.scalar("loss", loss.item())

    @torsh.range("evaluate")
    def evaluate(): ...

    torsh.Recording("out").read("leaks", limit=3)["leaks"]

Without the agent in the process everything here does nothing. Any thread may call anything; a range that was pushed
is popped by its own thread, one that was started may be ended by any. Imports ctypes, and nothing else before a
recording is read.
"""

import ctypes

__all__ = ["is_there", "range", "range_push", "range_pop", "range_start", "range_end", "mark", "scalar", "counter",
           "histogram", "step", "Recording", "RecordingError"]

_UNNUMBERED = 2**64 - 1
_SCALAR, _COUNTER, _SAMPLE = 0, 1, 2
_U64, _I64, _F64 = 1, 2, 3
_CO_COROUTINE = 0x80


class _Number(ctypes.Union):
    _fields_ = [("u64", ctypes.c_uint64), ("i64", ctypes.c_int64), ("f64", ctypes.c_double)]


class _Attributes(ctypes.Structure):
    """struct torsh_attributes of torsh.h."""

    _fields_ = [("size", ctypes.c_uint32), ("color", ctypes.c_uint32), ("domain", ctypes.c_char_p),
                ("category", ctypes.c_char_p), ("payload_type", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("payload", _Number)]


# The program's own symbols: the agent's are among them where it was preloaded. The calls are short: the GIL is kept.
_program = ctypes.PyDLL(None)


def _find(name, result, *arguments):
    entry = getattr(_program, "torsh_v1_" + name, None)
    if entry is not None:
        entry.restype, entry.argtypes = result, arguments
    return entry


_says = (ctypes.c_char_p, ctypes.POINTER(_Attributes))
_push = _find("range_push", ctypes.c_int, *_says)
_pop = _find("range_pop", ctypes.c_int, ctypes.c_char_p)
_start = _find("range_start", ctypes.c_uint64, *_says)
_end = _find("range_end", None, ctypes.c_uint64)
_mark = _find("mark", None, *_says)
_value = _find("value", None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_double)
_step = _find("step", None, ctypes.c_char_p, ctypes.c_uint64)


def _text(text):
    return None if text is None else str(text).encode("utf-8", "replace")


def _attributes(domain, category, color, payload):
    if domain is None and category is None and payload is None and not color:
        return None
    attributes = _Attributes(ctypes.sizeof(_Attributes), color, _text(domain), _text(category))
    if isinstance(payload, int):
        attributes.payload_type = _U64 if payload >= 1 << 63 else _I64
        attributes.payload.u64 = payload & _UNNUMBERED
    elif payload is not None:
        attributes.payload_type, attributes.payload.f64 = _F64, float(payload)
    return attributes


def is_there():
    """Is the agent in this process?"""
    return _push is not None


def range_push(name, domain=None, category=None, color=0, payload=None):
    """Begin a range that this thread ends, the innermost of its domain first. color: 0xAARRGGBB. Returns its depth."""
    return _push(_text(name), _attributes(domain, category, color, payload)) if _push else 0


def range_pop(domain=None):
    """End the innermost range of the domain on this thread. Returns its depth, -1 where there was none."""
    return _pop(_text(domain)) if _pop else 0


def range_start(name, domain=None, category=None, color=0, payload=None):
    """Begin a range that any thread may end, by the number that is returned."""
    return _start(_text(name), _attributes(domain, category, color, payload)) if _start else 0


def range_end(number):
    """End the range of that number."""
    if _end:
        _end(number)


def mark(name, domain=None, category=None, color=0, payload=None):
    """Mark this moment."""
    if _mark:
        _mark(_text(name), _attributes(domain, category, color, payload))


def scalar(name, value, domain=None):
    """A number that is plotted over time."""
    if _value:
        _value(_text(name), _text(domain), _SCALAR, float(value))


def counter(name, value, domain=None):
    """How many of something there are now."""
    if _value:
        _value(_text(name), _text(domain), _COUNTER, float(value))


def histogram(name, sample, domain=None):
    """One sample of a distribution."""
    if _value:
        _value(_text(name), _text(domain), _SAMPLE, float(sample))


def step(number=None):
    """A step of the training begins here, and the one before it ends. Without a number the agent counts."""
    if _step:
        _step(None, _UNNUMBERED if number is None else number)


class range:
    """
    A range as a context manager, or around each call of a function: `with torsh.range("x"):`, `@torsh.range("x")`.

    It may be entered again, also while it is open. A coroutine function gets a started range around each run, since
    others may run on its thread while it waits.
    """

    __slots__ = ("_name", "_domain", "_says")

    def __init__(self, name, domain=None, category=None, color=0, payload=None):
        self._name, self._domain = _text(name), _text(domain)
        self._says = _attributes(domain, category, color, payload)

    def __enter__(self):
        if _push:
            _push(self._name, self._says)
        return self

    def __exit__(self, *error):
        if _pop:
            _pop(self._domain)

    def __call__(self, function):
        if not _push:
            return function
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _CO_COROUTINE:
            async def wrapper(*arguments, **named):
                number = _start(self._name, self._says)
                try:
                    return await function(*arguments, **named)
                finally:
                    _end(number)
        else:
            def wrapper(*arguments, **named):
                with self:
                    return function(*arguments, **named)
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if hasattr(function, name):
                setattr(wrapper, name, getattr(function, name))
        wrapper.__dict__.update(getattr(function, "__dict__", {}))
        wrapper.__wrapped__ = function
        return wrapper


class RecordingError(Exception):
    """A recording could not be read; the text is the torsh command's."""


class Recording:
    """
    A recording, or the folder that holds it, read by way of the torsh command: $TORSH, or the one that this module was
    built or installed with, or that of the PATH.
    """

    def __init__(self, path, command=None):
        self.path, self._command = str(path), command or _find_command()

    def read(self, report, *arguments, **options):
        """The output of `torsh REPORT PATH --json`, as dictionaries and lists. min_bytes="1M"
        stands for --min-bytes=1M."""
        import json
        import subprocess

        words = ["--" + name.replace("_", "-") + ("" if value is True else f"={value}") for name, value in options.items()]
        done = subprocess.run([self._command, report, self.path, "--json", *map(str, arguments), *words],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # 1: a budget was exceeded, which the report contains.
        if done.returncode not in (0, 1):
            raise RecordingError(done.stderr.decode(errors="replace").strip())
        return json.loads(done.stdout)

    def events(self):
        """What `torsh dump` prints, one dictionary after the other: no more than a line is held in memory."""
        import json
        import subprocess

        with subprocess.Popen([self._command, "dump", self.path], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                yield json.loads(line)
        if process.returncode:
            raise RecordingError(f"torsh dump {self.path}: status {process.returncode}")


def _find_command():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    # PREFIX/lib/torsh/python/torsh.py or PREFIX/lib/python3.N/site-packages/torsh.py, and tools/python/torsh.py of the source.
    places = (os.environ.get("TORSH"), os.path.join(here, "../../../bin/torsh"), os.path.join(here, "../../build/torsh"))
    return next((place for place in places if place and os.access(place, os.X_OK)), "torsh")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Adds regions, marks, values and steps to the torsh recording of a Python program, measures its heap, and reads
recordings.

    import torsh

    for i, batch in enumerate(loader):
        torsh.step(i)
        with torsh.range("forward"):
            loss = model(batch)
        torsh.scalar("loss", loss.item())

    @torsh.range("evaluate")
    def evaluate(): ...

    @torsh.request("predict")
    async def answer(question): ...

    with torsh.memory() as m:
        work()
    print(m.peak_bytes, m.stayed_bytes, m.lines[:3])

    torsh.Recording("out").read("leaks", limit=3)["leaks"]
    torsh.to_parquet("out", "tables")
    torsh.load_profile("out").operators[0].aggregated.total_duration_ns
    torsh.flops(model, (8, 3, 224, 224))
    torsh.capture(model, batch).durations_ns

Without the agent in the process what records does nothing. All functions may be called on any thread; a pushed range is popped
by its own thread, a started one may be ended by any. Only ctypes is imported until a recording is read, a request begins,
or one of the last three is used.
"""

import ctypes

from torsh._memory import configure, current_bytes, export, leaks_since, memory, pause, peak_bytes, reset_peak, resume, snapshot
from torsh._ranks import ranks
from torsh._recording import Recording, RecordingError
from torsh._tables import to_parquet

TYPE_CHECKING = False  # as in typing, without importing it
if TYPE_CHECKING:
    from torsh._capture import Captured, capture
    from torsh._flops import flops
    from torsh._profile import Profile, load_profile
    from torsh._requests import request

# Imported when they are used first, from modules that import more than ctypes.
_LATER = {"request": "_requests", "capture": "_capture", "Captured": "_capture", "flops": "_flops", "load_profile": "_profile",
          "Profile": "_profile"}

__all__ = ["is_there", "range", "range_push", "range_pop", "range_start", "range_end", "mark", "scalar", "counter",
           "histogram", "step", "request", "capture", "Captured", "flops", "configure", "current_bytes", "export", "leaks_since", "memory", "pause", "peak_bytes",
           "ranks", "reset_peak", "resume", "snapshot", "to_parquet", "Recording", "RecordingError", "load_profile",
           "Profile"]

_UNNUMBERED = 2**64 - 1
_SCALAR, _COUNTER, _SAMPLE = 0, 1, 2
_U64, _I64, _F64 = 1, 2, 3
_CO_COROUTINE = 0x80
_SAMPLES_MAX = 10000


class _Number(ctypes.Union):
    _fields_ = [("u64", ctypes.c_uint64), ("i64", ctypes.c_int64), ("f64", ctypes.c_double)]


class _Attributes(ctypes.Structure):
    """struct torsh_attributes of torsh.h."""

    _fields_ = [("size", ctypes.c_uint32), ("color", ctypes.c_uint32), ("domain", ctypes.c_char_p),
                ("category", ctypes.c_char_p), ("payload_type", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("payload", _Number)]


# The symbols of the process, with the agent's if it was preloaded. The calls are short, so that the GIL is held.
_program = ctypes.PyDLL(None)


def _find(name, result, *arguments):
    entry = getattr(_program, "torsh_v1_" + name, None)
    if entry is not None:
        entry.restype, entry.argtypes = result, arguments
    return entry


_details = (ctypes.c_char_p, ctypes.POINTER(_Attributes))
_push = _find("range_push", ctypes.c_int, *_details)
_pop = _find("range_pop", ctypes.c_int, ctypes.c_char_p)
_start = _find("range_start", ctypes.c_uint64, *_details)
_end = _find("range_end", None, ctypes.c_uint64)
_mark = _find("mark", None, *_details)
_value = _find("value", None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_double)
_step = _find("step", None, ctypes.c_char_p, ctypes.c_uint64)


def _text(text):
    return text if text is None or isinstance(text, bytes) else str(text).encode("utf-8", "replace")


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


def is_there() -> bool:
    """Returns whether the agent is in this process."""
    return _push is not None


def range_push(name: str, domain: "str | None" = None, category: "str | None" = None, color: int = 0,
               payload: "int | float | None" = None) -> int:
    """Begin a range that this thread ends, the innermost of its domain first. color: 0xAARRGGBB. Returns its depth."""
    return _push(_text(name), _attributes(domain, category, color, payload)) if _push else 0


def range_pop(domain: "str | None" = None) -> int:
    """End the innermost range of the domain on this thread. Returns its depth, or -1 if there is none."""
    return _pop(_text(domain)) if _pop else 0


def range_start(name: str, domain: "str | None" = None, category: "str | None" = None, color: int = 0,
                payload: "int | float | None" = None) -> int:
    """Begin a range that any thread may end. Returns its number for range_end."""
    return _start(_text(name), _attributes(domain, category, color, payload)) if _start else 0


def range_end(number: int) -> None:
    """End the range with that number."""
    if _end:
        _end(number)


def mark(name: str, domain: "str | None" = None, category: "str | None" = None, color: int = 0,
         payload: "int | float | None" = None) -> None:
    """Mark this moment."""
    if _mark:
        _mark(_text(name), _attributes(domain, category, color, payload))


def scalar(name: str, value: float, domain: "str | None" = None) -> None:
    """Record a number that is plotted over time."""
    if _value:
        _value(_text(name), _text(domain), _SCALAR, float(value))


def counter(name: str, value: float, domain: "str | None" = None) -> None:
    """Record a current count."""
    if _value:
        _value(_text(name), _text(domain), _COUNTER, float(value))


def histogram(name: str, sample: object, domain: "str | None" = None) -> None:
    """
    Record a sample of a distribution, or all elements of a tensor, an array or a sequence; of more than 10,000
    elements only every k-th one, so that at most 10,000 are sent.
    """
    if _value:
        for one in _samples(sample):
            _value(_text(name), _text(domain), _SAMPLE, float(one))


def _samples(sample):
    if not hasattr(sample, "__len__") or getattr(sample, "shape", None) == ():
        return [sample]
    if hasattr(sample, "detach"):
        sample = sample.detach()
    flat = sample.reshape(-1) if hasattr(sample, "reshape") else sample
    some = flat[::-(-len(flat) // _SAMPLES_MAX) or 1]
    return some.tolist() if hasattr(some, "tolist") else some


def step(number: "int | None" = None, name: "str | None" = None) -> None:
    """Begin a step of the training, and end the previous one. Without a number the agent counts."""
    if _step:
        _step(_text(name), _UNNUMBERED if number is None else number)


def load_ipython_extension(shell: object) -> None:
    """%load_ext torsh."""
    from torsh.jupyter import load

    load(shell)


def _is_coroutine_function(function):
    return getattr(getattr(function, "__code__", None), "co_flags", 0) & _CO_COROUTINE


def _as(function, wrapper):
    """Returns the wrapper with the function's name and documentation."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(function, name):
            setattr(wrapper, name, getattr(function, name))
    wrapper.__dict__.update(getattr(function, "__dict__", {}))
    wrapper.__wrapped__ = function
    return wrapper


class range:
    """
    A range as a context manager, or around each call of a function: `with torsh.range("x"):`, `@torsh.range("x")`.

    It may be entered again, also while it is open. A coroutine function has a started range around each run, because
    other coroutines may run on its thread while it waits.
    """

    __slots__ = ("_name", "_domain", "_details")

    def __init__(self, name: str, domain: "str | None" = None, category: "str | None" = None, color: int = 0,
                 payload: "int | float | None" = None) -> None:
        self._name, self._domain = _text(name), _text(domain)
        self._details = _attributes(domain, category, color, payload)

    def __enter__(self) -> "range":
        if _push:
            _push(self._name, self._details)
        return self

    def __exit__(self, *error: object) -> None:
        if _pop:
            _pop(self._domain)

    def __call__(self, function):
        if not _push:
            return function
        if _is_coroutine_function(function):
            async def wrapper(*arguments, **named):
                number = _start(self._name, self._details)
                try:
                    return await function(*arguments, **named)
                finally:
                    _end(number)
        else:
            def wrapper(*arguments, **named):  # type: ignore[misc]
                with self:
                    return function(*arguments, **named)
        return _as(function, wrapper)


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'torsh' has no attribute {name!r}")
    import importlib

    globals()[name] = getattr(importlib.import_module("torsh." + _LATER[name]), name)
    return globals()[name]

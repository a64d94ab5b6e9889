# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
pytest --torsh: limits for the memory of tests, and a report of their use.

    @pytest.mark.limit_memory("24 MB")            how far the heap may rise in the test
    @pytest.mark.limit_leaks("1 MB", warmups=1)   what may stay of the test, after that many calls before
    @pytest.mark.limit_growth("1 KB", repeats=5)  what may stay of each further call

pytest replaces itself by `torsh run -- pytest`, so that the whole session is recorded, with xdist's workers. Only the
test function is measured, not its fixtures, and no methods of unittest.TestCase. A coroutine has no warmups.
PYTHONMALLOC=malloc is set unless the variable exists, so that small objects count. Without --torsh the marks do nothing.
"""

import gc
import inspect
import os
import re
import sys

import pytest

import torsh
from torsh._recording import find_command

_UNITS = {"": 1, "B": 1, "K": 1 << 10, "KB": 1000, "KIB": 1 << 10, "M": 1 << 20, "MB": 10**6, "MIB": 1 << 20, "G": 1 << 30,
          "GB": 10**9, "GIB": 1 << 30}
_MARKS = {
    "limit_memory": "limit_memory(size): how far the heap may rise in the test, under --torsh",
    "limit_leaks": "limit_leaks(size, warmups=1): what may stay allocated after the test, under --torsh",
    "limit_growth": "limit_growth(size, repeats=5, warmups=1): what may stay of each further call of the test, under --torsh",
}
_LINES_MAX = 5


def parse_size(text):
    """Returns the bytes of "24 MB" (10**6) or "24 MiB" (2**20)."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    if not match or match[2].upper() not in _UNITS:
        raise ValueError(f"{text!r} is not a size: write 24 MB or 24 MiB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def size_text(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024 or unit == "GiB":
            return f"{n:.4g} {unit}" if unit != "B" else f"{n} B"
        n /= 1024


def pytest_addoption(parser):
    group = parser.getgroup("torsh", "memory of tests, by torsh")
    group.addoption("--torsh", action="store_true",
                    help="record the session, obey the limits of tests, and report their memory")
    group.addoption("--torsh-output", metavar="DIR", help="keep the recording in this folder (default: none is kept)")
    group.addoption("--torsh-tests", metavar="N", type=int, default=5, help="tests in the report, those with the highest peak (5)")
    parser.addini("torsh", "like --torsh", type="bool", default=False)


def pytest_configure(config):
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)
    if config.getoption("torsh") or config.getini("torsh"):
        config.pluginmanager.register(Plugin(config), "torsh_memory")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    wanted = config.getoption("torsh") or config.getini("torsh")
    only_prints = any(config.getoption(name, False) for name in ("help", "version", "collectonly", "markers", "showfixtures"))
    if wanted and not only_prints and not hasattr(config, "workerinput") and not torsh.is_there():
        _run_under_agent(config)


def _run_under_agent(config):
    """Replace this process by the same command, recorded."""
    if os.environ.get("TORSH_PYTEST"):
        raise pytest.UsageError("torsh run did not load its agent into Python: nothing can be measured")
    arguments = [str(word) for word in config.invocation_params.args]
    line = getattr(sys, "orig_argv", [])
    is_command = len(line) > 1 and arguments == sys.argv[1:]
    command = [sys.executable, *line[1:]] if is_command else [sys.executable, "-m", "pytest", *arguments]
    output = config.getoption("torsh_output")
    os.environ["TORSH_PYTEST"] = "1"
    os.environ.setdefault("PYTHONMALLOC", "malloc")
    if not output:
        import tempfile

        output = os.environ["TORSH_PYTEST_SCRATCH"] = tempfile.mkdtemp(prefix="torsh-pytest-")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.stop_global_capturing()
    sys.stdout.flush()
    sys.stderr.flush()
    torsh_command = find_command()
    try:
        os.execvp(torsh_command, [torsh_command, "run", "--no-summary", "--output", output, "--", *command])
    except OSError as error:
        raise pytest.UsageError(f"{torsh_command} can't be run: {error.strerror}") from None


def _limit(item, name):
    """Returns the mark's limit in bytes and its options, or None."""
    mark = item.get_closest_marker(name)
    if not mark:
        return None
    if len(mark.args) != 1:
        pytest.fail(f"{name} takes one size: @pytest.mark.{name}(\"24 MB\")", pytrace=False)
    try:
        return parse_size(mark.args[0]), mark.kwargs
    except ValueError as error:
        problem = str(error)
    return pytest.fail(f"{name}: {problem}", pytrace=False)


class Plugin:
    """Measures each test in a process with an agent; collects the results and reports them."""

    def __init__(self, config):
        self.config, self.peaks = config, {}
        # Programs that a test starts must not see these.
        os.environ.pop("TORSH_PYTEST", None)
        self.scratch = os.environ.pop("TORSH_PYTEST_SCRATCH", None)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        if not torsh.is_there():
            return (yield)
        limits = {name: _limit(pyfuncitem, name) for name in _MARKS}
        function = pyfuncitem.obj
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        options = {key: value for limit in limits.values() if limit for key, value in limit[1].items()}
        needs_more = limits["limit_leaks"] or limits["limit_growth"]
        is_coroutine = inspect.iscoroutinefunction(function)
        if is_coroutine and limits["limit_growth"]:
            pytest.fail("limit_growth calls the test again, which is not possible for a coroutine", pytrace=False)
        for _ in range(options.get("warmups", 1) if needs_more and not is_coroutine else 0):
            function(**arguments)
        gc.collect()
        with torsh.memory(pyfuncitem.nodeid, lines=bool(limits["limit_leaks"])) as window:
            result = yield
            if needs_more:
                gc.collect()
        pyfuncitem.user_properties += [("torsh_peak_bytes", window.peak_bytes), ("torsh_stayed_bytes", window.stayed_bytes)]
        _check_memory(limits["limit_memory"], window)
        _check_leaks(limits["limit_leaks"], window)
        if limits["limit_growth"]:
            _check_growth(limits["limit_growth"][0], function, arguments, options.get("repeats", 5))
        return result

    def pytest_runtest_logreport(self, report):
        """The controller receives the reports of xdist's workers here."""
        properties = dict(report.user_properties)
        if report.when == "call" and "torsh_peak_bytes" in properties:
            self.peaks[report.nodeid] = properties["torsh_peak_bytes"], properties["torsh_stayed_bytes"]

    def pytest_terminal_summary(self, terminalreporter):
        most = sorted(self.peaks.items(), key=lambda item: -item[1][0])[:self.config.getoption("torsh_tests")]
        if most:
            terminalreporter.section("memory of tests, by torsh")
            terminalreporter.line(f"{'PEAK':>12} {'STAYED':>12}  TEST")
        for name, (peak, stayed) in most:
            terminalreporter.line(f"{size_text(peak):>12} {size_text(stayed):>12}  {name}")
        if len(self.peaks) > len(most):
            terminalreporter.line(f"and {len(self.peaks) - len(most)} more tests with lower peaks; --torsh-tests N shows N")
        if most and self.config.getoption("torsh_output"):
            terminalreporter.line(f"next: torsh report {self.config.getoption('torsh_output')}")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config):
        """Remove the recording, which the writer still has open, so that it continues without a name."""
        if self.scratch:
            import shutil

            shutil.rmtree(self.scratch, ignore_errors=True)


def _check_memory(limit, window):
    if limit and window.peak_bytes > limit[0]:
        pytest.fail(f"the heap rose by {size_text(window.peak_bytes)} in this test, limited to {size_text(limit[0])}"
                    f" ({window.peak_bytes} and {limit[0]} bytes)", pytrace=False)


def _check_leaks(limit, window):
    if not limit or window.stayed_bytes <= limit[0]:
        return
    lines = [f"{size_text(window.stayed_bytes)} stayed of this test, limited to {size_text(limit[0])}:"]
    shown = [line for line in window.lines[:_LINES_MAX] if line["bytes"] * 100 >= window.stayed_bytes]
    lines += [f"{size_text(line['bytes']):>12}  {line['file']}:{line['line']} {line['function']}" for line in shown]
    rest = window.lines[len(shown):]
    if rest:
        lines.append(f"{size_text(sum(line['bytes'] for line in rest)):>12}  at {len(rest)} more lines")
    pytest.fail("\n".join(lines), pytrace=False)


def _check_growth(limit, function, arguments, repeats):
    sizes = []
    for _ in range(max(repeats, 2)):
        function(**arguments)
        gc.collect()
        sizes.append(torsh.current_bytes())
    growth = (sizes[-1] - sizes[0]) // (len(sizes) - 1)
    if growth > limit:
        pytest.fail(f"the heap grew by {size_text(growth)} with each of {len(sizes) - 1} calls of this test, limited to "
                    f"{size_text(limit)}", pytrace=False)

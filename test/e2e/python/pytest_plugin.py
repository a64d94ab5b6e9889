#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""pytest --torsh: limits of memory, leaks and growth, alone and with xdist, and the report of a session."""

import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from environments import environment_python  # noqa: E402
from harness import *  # noqa: E402,F403

all_need("pytest")
HEAD = "import pytest\nkept = []\n"


def run_tests(text, *options, env=None, folder=None, files=None):
    """pytest in a fresh folder with one module; returns its status and output."""
    folder = folder or scratch("tests")
    for name, content in {"test_it.py": HEAD + text, **(files or {})}.items():
        (folder / name).write_text(content)
    variables = {"PYTHONPATH": str(ROOT / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1", "TORSH": str(TORSH), **(env or {})}
    result = run([environment_python("pytest"), "-m", "pytest", "-p", "torsh.pytest_plugin", "-p", "no:cacheprovider", *options],
                 {**clean_environment(), **variables}, cwd=folder)
    return result.returncode, result.stdout.decode() + result.stderr.decode()


def expect_outcome(run_of_tests, status, *texts, absent=()):
    expect_equal(run_of_tests[0], status, f"status ({run_of_tests[1]})")
    for text in texts:
        assert text in run_of_tests[1], f"{text!r} is missing: {run_of_tests[1]}"
    for text in absent:
        assert text not in run_of_tests[1], f"{text!r}: {run_of_tests[1]}"


MEMORY = """
@pytest.fixture
def large():
    return bytearray(9_000_000)

@pytest.mark.limit_memory("2 MB")
@pytest.mark.parametrize("n", [1, 3])
def test_rises(n):
    bytearray(n * 1_000_000)

class TestClass:
    @pytest.mark.limit_memory("2 MB")
    def test_fixtures_do_not_count(self, large):
        bytearray(1_000_000)

@pytest.mark.limit_memory("500 KB")
def test_small_objects_count():
    [object() for _ in range(100_000)]

@pytest.mark.limit_memory("1 MB")
def test_fails_by_itself():
    assert 1 == 2
"""
RESULTS = ("3 failed, 2 passed", "the heap rose by 2.861 MiB in this test, limited to 1.907 MiB", "FAILED test_it.py::test_rises[3]",
           "FAILED test_it.py::test_small_objects_count", "assert 1 == 2", "memory of tests, by torsh", "test_it.py::test_rises[1]")


@case
def a_test_that_takes_more_than_its_limit_fails():
    expect_outcome(run_tests(MEMORY, "--torsh"), 1, *RESULTS, absent=["test_fails_by_itself\n   ", "torsh:"])


@case
def xdist_measures_in_its_workers():
    folder = scratch("xdist")
    expect_outcome(run_tests(MEMORY, "--torsh", "-n", "2", "--junitxml", folder / "junit.xml"), 1, *RESULTS)
    properties = {case.get("name"): {each.get("name"): int(each.get("value")) for each in case.iter("property")}
                  for case in xml.etree.ElementTree.parse(folder / "junit.xml").iter("testcase")}
    assert 999_000 < properties["test_rises[1]"]["torsh_peak_bytes"] < 1_010_000, properties


@case
def without_the_option_marks_do_nothing():
    expect_outcome(run_tests(MEMORY, "--strict-markers"), 1, "1 failed, 4 passed", absent=["memory of tests"])


@case
def the_option_may_be_in_the_configuration():
    files = {"pytest.ini": "[pytest]\ntorsh = true\n"}
    expect_outcome(run_tests("def test_it():\n    bytearray(3_000_000)\n", files=files), 0, "1 passed", "2.861 MiB", "test_it.py::test_it")


LEAKS = """
@pytest.mark.limit_leaks("10 KB")
def test_is_clean(tmp_path):
    (tmp_path / "file").write_text("text")
    [object() for _ in range(10_000)]

@pytest.mark.limit_leaks("10 KB")
def test_leaks():
    kept.append(bytearray(50_000))

@pytest.mark.limit_leaks("100 KB")
def test_leaks_within_its_limit():
    kept.append(bytearray(50_000))

cache = {}

@pytest.mark.limit_leaks("10 KB", warmups=2)
def test_fills_a_cache_once():
    cache["it"] = cache.get("it") or bytearray(50_000)

@pytest.mark.limit_growth("1 KB", repeats=4)
def test_grows():
    kept.append([object() for _ in range(1000)])

@pytest.mark.limit_growth("1 KB")
def test_does_not_grow():
    [object() for _ in range(1000)]
"""


@case
def what_stays_and_what_grows_is_limited():
    line = next(number for number, text in enumerate((HEAD + LEAKS).splitlines(), 1) if "kept.append(bytearray" in text)
    expect_outcome(run_tests(LEAKS, "--torsh"), 1, "2 failed, 4 passed", "stayed of this test, limited to 9.766 KiB",
                   f"test_it.py:{line} test_leaks", "the heap grew by", "with each of 3 calls of this test, limited to 1000 B")


@case
def a_limit_that_is_no_size_is_named():
    tests = '@pytest.mark.limit_memory("2 apples")\ndef test_it():\n    pass\n\n@pytest.mark.limit_leaks()\ndef test_none():\n    pass\n'
    tests += '@pytest.mark.limit_growth("1 KB")\nasync def test_again():\n    pass\n'
    expect_outcome(run_tests(tests, "--torsh"), 1, "limit_memory: '2 apples' is not a size", "limit_leaks takes one size",
                   "limit_growth calls the test again", "3 failed")


MARKED = """
import threading
import unittest

pytestmark = pytest.mark.limit_memory("2 MB")
calls = []

def test_is_called_once():
    calls.append(1)
    assert len(calls) == 1

def test_of_a_marked_module():
    bytearray(3_000_000)

@pytest.mark.limit_memory("4 MB")
def test_its_own_mark_comes_first():
    bytearray(3_000_000)

@pytest.mark.limit_memory("1 MB")
class TestMarked:
    def test_of_a_marked_class(self):
        bytearray(1_500_000)

@pytest.mark.limit_leaks("10 KB")
def test_leaks_in_a_thread():
    thread = threading.Thread(target=lambda: kept.append(bytearray(50_000)))
    thread.start()
    thread.join()

@pytest.mark.parametrize("text", [1], ids=["a" * 300])
def test_with_a_long_name(text):
    bytearray(1_000_000)

class TestOld(unittest.TestCase):
    def test_of_unittest_is_not_measured(self):
        bytearray(3_000_000)
"""


@case
def marks_of_modules_classes_and_threads_are_obeyed():
    folder = scratch("marked")
    expect_outcome(run_tests(MARKED, "--torsh", "-Werror", "--junitxml", folder / "junit.xml"), 1, "3 failed, 4 passed",
                   "FAILED test_it.py::test_of_a_marked_module", "FAILED test_it.py::TestMarked::test_of_a_marked_class",
                   "FAILED test_it.py::test_leaks_in_a_thread", f"test_it.py::test_with_a_long_name[{'a' * 300}]")
    failures = [case.findtext("failure") for case in xml.etree.ElementTree.parse(folder / "junit.xml").iter("testcase")]
    assert any("the heap rose by 2.861 MiB in this test, limited to 1.907 MiB" in (text or "") for text in failures), failures


@case
def the_report_has_as_many_tests_as_are_wanted():
    text = "@pytest.mark.parametrize('n', range(8))\ndef test_it(n):\n    bytearray(1_000_000 + n)\n\ndef test_fails():\n    assert 1 == 2\n"
    expect_outcome(run_tests(text, "--torsh"), 1, "and 3 more tests", absent=["test_it.py::test_it[0]"])
    expect_outcome(run_tests(text, "--torsh", "--torsh-tests", "2"), 1, "test_it[7]", "test_it[6]", "and 6 more tests", absent=["test_it[5]"])


@case
def the_recording_may_be_kept():
    folder = scratch("kept")
    text = "def test_it():\n    kept.append(bytearray(3_000_000))\n"
    expect_outcome(run_tests(text, "--torsh", "--torsh-output", folder / "out"), 0, "1 passed", f"next: torsh report {folder / 'out'}")
    assert read_report("peak", folder / "out", "--no-lines", "--limit", "1")["peak_bytes"] > 3_000_000


@case
def help_and_collection_are_not_recorded():
    expect_outcome(run_tests(MEMORY, "--torsh", "--collect-only", "-q"), 0, "5 tests collected", absent=["memory of tests"])
    expect_outcome(run_tests(MEMORY, "--torsh", "--markers"), 0, "limit_memory(size)", "limit_growth(size, repeats=5")


@case
def pytest_without_torsh_run_says_why():
    expect_outcome(run_tests(MEMORY, "--torsh", env={"TORSH": "/bin/false", "TORSH_PYTEST": "1"}), 4, "nothing can be measured")


main()

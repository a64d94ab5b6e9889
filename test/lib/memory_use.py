# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What reading commands take."""

import os
import subprocess

from harness import TORSH, clean_environment, expect_equal


def memory_of(*arguments):
    """The most KiB that a command took."""
    started = subprocess.Popen([TORSH, *map(str, arguments)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    expect_equal(started.returncode, 0, "status")
    return usage.ru_maxrss

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The Python that has PyTorch."""

import os

from harness import IS_QUICK, ROOT, Skip, run


def torch_python():
    """Its path; with TORSH_TEST_TORCH=1 PyTorch is put into build/venv where it isn't (about 3 GB)."""
    if IS_QUICK:
        raise Skip("takes too long for the short form of the tests")
    given = os.environ.get("TORSH_TEST_TORCH_PYTHON")
    if given:
        return given
    may_download = os.environ.get("TORSH_TEST_TORCH") == "1"
    found = run([ROOT / "test/demo/python", *([] if may_download else ["--no-download"])], os.environ, timeout=3000)
    if found.returncode:
        raise Skip("no PyTorch here, and TORSH_TEST_TORCH=1 is not set")
    return found.stdout.decode().strip()

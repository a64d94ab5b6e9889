# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The environments that test/python/environment makes; test/run makes those that the selected cases
need."""

import functools
import os

from harness import IS_QUICK, ROOT, Skip, missing, run

TORCH_VERSION = os.environ.get("TORCH")  # none: today's
TORCH = f"torch-{TORCH_VERSION}" if TORCH_VERSION else "torch"


@functools.lru_cache(None)
def environment_python(name):
    """The path of an environment's Python."""
    if IS_QUICK:
        raise Skip("takes too long for the short form of the tests")
    found = run([ROOT / "test/python/environment", "--no-download", name], os.environ)
    if found.returncode:
        missing(f"{found.stderr.decode().strip()}: `test/python/environment {name}` could not make it from PyPI, or didn't run")
    return found.stdout.decode().strip()


def torch_python():
    """PyTorch's environment: today's, or of the version in TORCH."""
    return environment_python(TORCH)

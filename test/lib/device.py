# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs on a device: a real one with TEST_DEVICE=real (make test-gpu), else the simulated one.
"""

import os

from environments import torch_python
from harness import Skip, agent_environment, clean_environment, expect_equal, run, scratch
from simcuda import LIBRARIES, cuda_python, need_simcuda, preloaded

IS_REAL = os.environ.get("TEST_DEVICE") == "real"


def device_variables(variables):
    """The environment with what leads a program to the device."""
    if IS_REAL:
        return variables
    need_simcuda()
    preload = ":".join(filter(None, [variables.get("LD_PRELOAD"), preloaded()]))
    return {**variables, "LD_PRELOAD": preload, "LD_LIBRARY_PATH": str(LIBRARIES)}


def device_python():
    """A Python with a PyTorch that can use the device. A case that uses it is marked with
    @needs("torch")."""
    if not IS_REAL:
        return cuda_python()
    python = torch_python()
    result = run([python, "-c", "import torch; print(torch.cuda.is_available())"])
    if result.stdout.strip() != b"True":
        raise Skip("the PyTorch here finds no device")
    return python


def run_bare(command, **options):
    return run(command, device_variables(clean_environment()), **options)


def record_on_device(command, expect=0, env=None, **options):
    """What the command printed, and its recording."""
    output = scratch()
    result = run(command, device_variables({**agent_environment(output), **(env or {})}), **options)
    expect_equal(result.returncode, expect, f"status\n{result.stderr.decode()[-3000:]}\n")
    return result, output

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The Python with PyTorch, for scripts in which every case needs it: importing this marks them."""

from environments import TORCH, torch_python  # noqa: F401
from harness import all_need, shared

all_need("torch")


def inductor_cache():
    """
    The environment in which all cases share what Inductor compiles: half a minute of g++ for a layer, and twice that under
    the agent.
    """
    return {"TORCHINDUCTOR_CACHE_DIR": str(shared(f"inductor-{TORCH}"))}


# For what is asked of operators alone: recording the heap takes as long as importing PyTorch does, and reading it twice that.
OPERATORS_ONLY = {"TORSH_PROFILER_ACTIVITIES": "torch"}


def unrecorded_compilers():
    """The same where only Python's processes are recorded: recording g++ takes as long as itself."""
    return {**inductor_cache(), "TORSH_PROFILER_FILTER": "python*"}

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The Python that has PyTorch, for scripts of which every case needs it: importing this says so."""

from environments import torch_python  # noqa: F401
from harness import all_need

all_need("torch")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Small models to profile: `torsh workloads` runs them, plain and in variants, and compares the runs.

Each is a module with get_model_and_input(device=None, size=None), which returns the model and its input, a tensor or a tuple of
them, with random weights and nothing from the network. size "full" has the figures of the operator profiler's examples
(yottalabsai/Profiler), where it has such a one; "small" runs in seconds on a CPU. A file with such a function, also one
without parameters, as that profiler's, is a workload too: FILE.py instead of a name.
"""

# By name: what it is, and whether its inputs are images, which channels_last is for.
WORKLOADS = {
    "conv_block": ("convolutions with batch norms and ReLU, pooled, and a classifier (VGG)", True),
    "depthwise_separable_conv": ("depthwise and pointwise convolutions (MobileNet)", True),
    "embedding_projection": ("a table of tokens, a projection, and logits of a vocabulary", False),
    "gpt2": ("GPT-2 with equal transformer blocks, full: 12 of width 768", False),
    "lstm_sequence_encoder": ("two layers of LSTM over a sequence, averaged, and a classifier", False),
    "mlp_activations": ("linear layers with ReLU, GELU, SiLU and tanh", False),
    "sdpa_attention": ("multi-head attention by scaled_dot_product_attention", False),
    "lstm_language_model": ("tokens, two layers of LSTM, and logits of a vocabulary", False),
    "unet_block": ("a block of a diffusion model's UNet: group norms, time, attention to itself and to a text", True),
    "recommender": ("tables of categories, their products with dense features, a score (DLRM)", False),
}
SIZES = ("small", "full")
VARIANTS = {
    "eager": "as it is",
    "compile": "torch.compile with Inductor",
    "channels_last": "images with their channels last",
    "amp": "autocast: bfloat16 on a CPU, float16 on a device",
    "cudagraphs": "torch.compile with CUDA graphs, on devices of CUDA only",
}
VARIANTS_BY_DEFAULT = ("eager", "compile", "channels_last", "amp")
SIMULATED = "Simulated CUDA device"


def usual_size(device):
    """full on a real device of CUDA, else small."""
    import torch

    return "full" if str(device).startswith("cuda") and torch.cuda.get_device_name() != SIMULATED else "small"


def settle(sizes, device, size):
    """Returns the device, CUDA's if there is one, and the figures of that size."""
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return device, sizes[size or usual_size(device)]


def path_of(name):
    """Returns the file of a workload: a name of the list, or a path that ends in .py."""
    import os

    if name in WORKLOADS:
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    if name.endswith(".py") and os.path.isfile(name):
        return os.path.abspath(name)
    raise ValueError(f"there is no workload {name}: torsh workloads list has the names, or give a FILE.py with get_model_and_input()")


def load(name, device=None, size=None):
    """Returns the model and a tuple of its inputs, on that device."""
    import importlib.util
    import inspect

    path = path_of(name)
    spec = importlib.util.spec_from_file_location("torsh_workload", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} can't be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "get_model_and_input"):
        raise ValueError(f"{path} has no function get_model_and_input()")
    if inspect.signature(module.get_model_and_input).parameters:
        model, inputs = module.get_model_and_input(device, size)
    else:
        model, inputs = module.get_model_and_input()
    return model, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)

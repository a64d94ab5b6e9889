# SPDX-License-Identifier: Apache-2.0 OR MIT
import torch

print(torch.__version__)

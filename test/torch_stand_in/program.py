# SPDX-License-Identifier: Apache-2.0 OR MIT
"""program.py: some of everything, through the stand-in for PyTorch."""
import os
import sys
import threading

import torch
from torch.nn.modules.module import Module, _has_any_global_hook

assert type(torch.__spec__).__name__ == "ModuleSpec", type(torch.__spec__)
assert not torch.nn.modules.module._has_any_global_hook(), "the agent's own hooks are not counted"


class Outer(Module):
    def forward(self):
        return self.children["inner"]()


class Inner(Module):
    def forward(self):
        torch.add(torch.zeros(2, 3), torch.zeros(2, 3), alpha=0.25)
        if len(sys.argv) > 1:
            raise ValueError


def everything():
    plain = torch.zeros(2, 3)
    torch.mul(plain, plain.t())
    torch.mul(torch.zeros(2, 1, 3, 1, 4, 1, dtype=torch.int64), torch.zeros(dtype=torch.bool))
    torch.mul(torch.zeros(0, 7, device="cuda"), torch.zeros(5, dtype=99))
    torch.call("aten::many", None, 7, -1.5, 1e-8, True, False, torch.Tensor, [1, -2], [plain, torch.Tensor], [])
    torch.call("none of them")
    torch.call("a scope", scope=torch.USER, inside=lambda: torch.call("within", plain))
    torch.call("AddBackward0", plain, scope=torch.BACKWARD)
    for i in range(100):
        torch.call("aten::counts", plain, i)
    torch.mul(torch.zeros(1, requires_grad=True), plain)
    torch.mul(torch.zeros(1), plain)
    try:
        Outer(inner=Inner())()
    except ValueError:
        pass


everything()
results = []
thread = threading.Thread(target=lambda: results.append(torch.mul(torch.zeros(4), torch.zeros(4))))
thread.start()
thread.join()
results[0].grad_fn(torch.zeros(4))
torch.add(torch.zeros(1), torch.zeros(1)).grad_fn(torch.zeros(1))

blocks = [torch._library.stand_in_allocate(1000) for _ in range(3)]
profiled = torch.ctypes.c_int.in_dll(torch._library, "stand_in_profiles")
profiled.value = 1
during = torch._library.stand_in_allocate(500)
torch._library.stand_in_free(torch.ctypes.c_void_p(blocks[0]))
reported = torch.ctypes.c_int64.in_dll(torch._library, "stand_in_reported").value
total = torch.ctypes.c_int64.in_dll(torch._library, "stand_in_sum").value
torch._library.stand_in_free(torch.ctypes.c_void_p(during))
profiled.value = 0
torch._library.stand_in_run_out(torch.ctypes.c_int64(12345))
torch._library.stand_in_free(torch.ctypes.c_void_p(blocks[1]))
out = torch.ctypes.c_int64.in_dll(torch._library, "stand_in_out_of_memory").value
print(reported, total, torch.ctypes.c_int64.in_dll(torch._library, "stand_in_reported").value, out)
sys.stdout.flush()

child = os.fork()
if not child:
    torch.mul(torch.zeros(9), torch.zeros(9))
    os._exit(0)
os.waitpid(child, 0)

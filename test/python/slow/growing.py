# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A sequence is joined to what came before with each token; cured, all are joined once."""

import time

import torch
import torsh
from work import IS_SLOW, end

STEPS, TOKENS = 8, 200

weights = torch.randn(512, 512) / 512 ** 0.5
begin_s = time.process_time()
with torch.no_grad():
    for step in range(STEPS):
        torsh.step(step)
        token, parts = torch.full((64, 512), 1.0 + step), []
        seen = torch.empty(0, 512)
        for i in range(TOKENS):
            token = torch.tanh(token + i)
            if IS_SLOW:
                seen = torch.cat([seen, token])
            else:
                parts.append(token)
        if not IS_SLOW:
            seen = torch.cat(parts)
        result = float((seen[-64:] @ weights).mean())
        torsh.scalar("mean", result)
end({"mean": result}, begin_s)

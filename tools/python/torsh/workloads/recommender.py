# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A recommender as DLRM: bags of categories from several tables, dense features, the products of all pairs, and a score."""

import torch
from torch import nn

from torsh.workloads import settle

SIZES = {
    "full": {"batch": 2048, "dense": 13, "tables": 26, "rows": 100000, "width": 64, "bag": 4},
    "small": {"batch": 128, "dense": 13, "tables": 6, "rows": 1000, "width": 16, "bag": 4},
}


class Recommender(nn.Module):
    def __init__(self, dense, tables, rows, width):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(dense, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 8 * width), nn.ReLU(), nn.Linear(8 * width, 1), nn.Sigmoid())
        row, column = torch.tril_indices(tables + 1, tables + 1, offset=-1).unbind()
        self.register_buffer("row", row)
        self.register_buffer("column", column)

    def forward(self, dense, categories):
        x = self.bottom(dense)
        features = torch.stack([x, *(table(categories[:, i]) for i, table in enumerate(self.tables))], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))[:, self.row, self.column]
        return self.top(torch.cat([x, products], dim=1))


def get_model_and_input(device=None, size=None):
    device, figures = settle(SIZES, device, size)
    model = Recommender(*(figures[name] for name in ("dense", "tables", "rows", "width"))).to(device).eval()
    batch = figures["batch"]
    return model, (torch.randn(batch, figures["dense"], device=device),
                   torch.randint(0, figures["rows"], (batch, figures["tables"], figures["bag"]), device=device))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
flops_programs.py [NAME...]: runs many small programs, or these, each as it is and then under PyTorch's FlopCounterMode, both
in a scope of its name ("NAME" and "counted NAME"). Prints as JSON what the counter counted, by program and operator.
"""
import json
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode, flop_registry

PROGRAMS = {}
CPU_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
KNOWS_CPU_ATTENTION = getattr(torch.ops.aten, CPU_ATTENTION) in flop_registry


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def learn(model, *inputs):
    """Forward and backward, also to the inputs."""
    inputs = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    out = model(*inputs)
    (out[0] if isinstance(out, tuple) else out).float().square().mean().backward()


def heads(length=10, size=8):
    return [torch.randn(2, 4, length, size, requires_grad=True) for _ in range(3)]


def attention_by(backend, **options):
    from torch.nn.attention import sdpa_kernel

    query, key, value = heads()
    with sdpa_kernel(backend):
        F.scaled_dot_product_attention(query, key, value, **options).sum().backward()


@program
def attention_math():
    from torch.nn.attention import SDPBackend

    attention_by(SDPBackend.MATH)


@program
def attention_flash():
    from torch.nn.attention import SDPBackend

    attention_by(SDPBackend.FLASH_ATTENTION)


@program
def attention_flash_causal():
    from torch.nn.attention import SDPBackend

    attention_by(SDPBackend.FLASH_ATTENTION, is_causal=True)


@program
def attention_masked():
    query, key, value = heads()
    F.scaled_dot_product_attention(query, key, value, attn_mask=torch.randn(10, 10)).sum().backward()


@program
def attention_dropped():
    query, key, value = heads()
    F.scaled_dot_product_attention(query, key, value, dropout_p=0.5).sum().backward()


@program
def attention_crossed():
    """Other lengths, and of values another size, which only composed attention takes."""
    F.scaled_dot_product_attention(torch.randn(2, 4, 5, 8), torch.randn(2, 4, 11, 8), torch.randn(2, 4, 11, 6))
    F.scaled_dot_product_attention(torch.randn(2, 4, 5, 8), torch.randn(2, 4, 11, 8), torch.randn(2, 4, 11, 8))


if "enable_gqa" in F.scaled_dot_product_attention.__doc__:
    @program
    def attention_grouped():
        attention = F.scaled_dot_product_attention
        attention(torch.randn(2, 8, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8), enable_gqa=True)


@program
def attention_3d():
    query, key, value = (torch.randn(3, 5, 8, requires_grad=True) for _ in range(3))
    F.scaled_dot_product_attention(query, key, value).sum().backward()


@program
def attention_module():
    model, x = nn.MultiheadAttention(16, 4, batch_first=True), torch.randn(2, 7, 16)
    learn(lambda x: model(x, x, x), x)
    learn(lambda x: model(x, x, x, need_weights=False)[0], x)


@program
def attention_fast_path():
    model, x = nn.MultiheadAttention(16, 4, batch_first=True).eval(), torch.randn(2, 7, 16)
    with torch.no_grad():
        model(x, x, x, need_weights=False)


@program
def encoder():
    learn(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), torch.randn(2, 10, 16))


@program
def encoder_fast_path():
    with torch.inference_mode():
        nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()(torch.randn(2, 10, 16))


@program
def decoder():
    model = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
    learn(model, torch.randn(2, 5, 16), torch.randn(2, 7, 16))


def recurrent(kind, **options):
    learn(kind(6, 8, 2, **options), torch.randn(5, 3, 6))


@program
def lstm():
    recurrent(nn.LSTM)


@program
def lstm_bidirectional():
    recurrent(nn.LSTM, bidirectional=True)


@program
def lstm_projected():
    recurrent(nn.LSTM, proj_size=4)


@program
def lstm_inference():
    with torch.no_grad():
        nn.LSTM(6, 8, 2)(torch.randn(5, 3, 6))


@program
def lstm_cell():
    model = nn.LSTMCell(6, 8)
    learn(lambda x: model(x)[0], torch.randn(3, 6))


@program
def gru():
    recurrent(nn.GRU)


@program
def gru_cell():
    learn(nn.GRUCell(6, 8), torch.randn(3, 6))


@program
def rnn():
    recurrent(nn.RNN)


def packed(kind):
    model, x = kind(6, 8), torch.randn(5, 3, 6, requires_grad=True)
    sequence = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 4, 2]))
    model(sequence)[0].data.sum().backward()


@program
def lstm_packed():
    packed(nn.LSTM)


@program
def gru_packed():
    packed(nn.GRU)


@program
def convolution_1d():
    learn(nn.Conv1d(4, 6, 3, padding="same", dilation=2), torch.randn(2, 4, 20))


@program
def convolution_unbatched():
    learn(nn.Conv2d(4, 6, 3), torch.randn(4, 9, 9))


@program
def convolution_2d():
    learn(nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), padding_mode="reflect"), torch.randn(2, 4, 12, 11))


@program
def convolution_channels_last():
    layers = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 16, 3, stride=2), nn.Conv2d(16, 8, 1))
    learn(layers.to(memory_format=torch.channels_last), torch.randn(2, 8, 12, 12).to(memory_format=torch.channels_last))


@program
def convolution_3d_channels_last():
    model = nn.Conv3d(4, 6, (2, 3, 1)).to(memory_format=torch.channels_last_3d)
    learn(model, torch.randn(2, 4, 5, 6, 7).to(memory_format=torch.channels_last_3d))


@program
def convolution_dilated():
    learn(nn.Conv2d(4, 6, 3, dilation=(2, 3)), torch.randn(2, 4, 14, 14))
    learn(nn.Conv3d(4, 6, 3, dilation=2), torch.randn(1, 4, 9, 9, 9))


@program
def convolution_grouped():
    with torch.no_grad():
        nn.Conv2d(8, 16, 3, groups=4)(torch.randn(2, 8, 9, 9))
        nn.Conv2d(8, 8, 3, groups=8)(torch.randn(2, 8, 9, 9))


@program
def convolution_grouped_backward():
    learn(nn.Conv2d(8, 16, 3, groups=4), torch.randn(2, 8, 9, 9))
    learn(nn.ConvTranspose2d(8, 16, 3, groups=2), torch.randn(2, 8, 9, 9))


@program
def convolution_transposed():
    learn(nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1), torch.randn(2, 4, 10))
    learn(nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, bias=False), torch.randn(2, 4, 5, 6))
    learn(nn.ConvTranspose3d(4, 6, (1, 2, 3)).to(memory_format=torch.channels_last_3d), torch.randn(2, 4, 5, 6, 7))


@program
def convolution_of_frozen_weights():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    model[0].requires_grad_(False)
    model(torch.randn(2, 3, 9, 9)).sum().backward()


@program
def convolution_by_mkldnn():
    with torch.no_grad():
        F.conv2d(torch.randn(2, 3, 9, 9).to_mkldnn(), torch.randn(4, 3, 3, 3).to_mkldnn()).to_dense()


@program
def convolution_bfloat16():
    learn(nn.Conv2d(4, 6, 3).bfloat16(), torch.randn(2, 4, 9, 9).bfloat16())


@program
def products():
    a, b, c = torch.randn(6, 5, 7), torch.randn(6, 7, 8), torch.randn(6, 5, 8)
    torch.bmm(a, b), torch.baddbmm(c, a, b), torch.addbmm(c[0], a, b), a @ b, a @ b[0], a[0] @ b, torch.mm(a[0], b[0])
    torch.addmm(c[0], a[0], b[0]), torch.chain_matmul(a[0], b[0], c[0].t()), torch.linalg.multi_dot([a[0], b[0], c[0].t()])
    torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,bkj->ik", a, a), torch.einsum("ij,jk,lk->il", a[0], b[0], c[0])
    torch.tensordot(a, b, dims=([2], [1])), torch.inner(a, a), torch.matrix_power(torch.eye(4), 5)


@program
def products_in_place():
    """To the counter these are other operators."""
    a, b = torch.randn(6, 5, 7), torch.randn(6, 7, 8)
    torch.empty(5, 8).addmm_(a[0], b[0]), torch.empty(6, 5, 8).baddbmm_(a, b)


if KNOWS_CPU_ATTENTION:
    @program
    def products_into_others():
        a, b = torch.randn(6, 5, 7), torch.randn(6, 7, 8)
        torch.mm(a[0], b[0], out=torch.empty(5, 8)), torch.bmm(a, b, out=torch.empty(6, 5, 8))


@program
def products_of_vectors():
    a, v = torch.randn(5, 7), torch.randn(7)
    torch.mv(a, v), a @ v, v @ a.t(), torch.dot(v, v), torch.addmv(torch.ones(5), a, v), torch.outer(v, v), torch.vdot(v, v)
    torch.addr(torch.zeros(7, 7), v, v), torch.ger(v, v), torch.randn(3, 5, 7) @ v


@program
def products_of_complex():
    a, b = torch.randn(5, 7, dtype=torch.complex64), torch.randn(7, 8, dtype=torch.complex64)
    a @ b, torch.bmm(a[None], b[None])


@program
def products_of_integers():
    a = torch.arange(64).reshape(8, 8)
    a @ a, torch.bmm(a[None], a[None])


@program
def products_of_sparse():
    a = torch.eye(8).to_sparse()
    torch.sparse.mm(a, torch.randn(8, 4)), a @ torch.randn(8, 4), torch.eye(8).to_sparse_csr() @ torch.randn(8, 4)


@program
def products_backward():
    weight = torch.randn(6, 7, 8, requires_grad=True)
    learn(lambda x: torch.bmm(x, weight) + torch.einsum("bij,bjk->bik", x, weight), torch.randn(6, 5, 7))
    learn(lambda x: torch.baddbmm(torch.zeros(6, 5, 8), x, weight) @ weight[0].t(), torch.randn(6, 5, 7))
    learn(lambda x: x @ torch.ones(7), torch.randn(5, 7))


@program
def products_of_nothing():
    torch.mm(torch.empty(0, 5), torch.empty(5, 3)), torch.bmm(torch.empty(2, 0, 5), torch.empty(2, 5, 3))
    torch.mm(torch.empty(3, 0), torch.empty(0, 4))


@program
def linear():
    for bias in True, False:
        model = nn.Linear(7, 5, bias=bias)
        for shape in (7,), (4, 7), (3, 4, 7), (2, 3, 4, 7):
            learn(model, torch.randn(shape))


@program
def linear_of_views():
    """Not contiguous, so that it may become another product."""
    learn(nn.Linear(7, 5), torch.randn(4, 3, 7).transpose(0, 1))
    learn(nn.Linear(7, 5), torch.randn(4, 14)[:, ::2])


@program
def linear_inference():
    with torch.inference_mode():
        nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))(torch.randn(4, 7))


@program
def linear_lazy():
    learn(nn.LazyLinear(5), torch.randn(4, 7))


@program
def linear_normalised():
    learn(nn.utils.parametrizations.weight_norm(nn.Linear(7, 5)), torch.randn(4, 7))
    learn(nn.utils.parametrizations.spectral_norm(nn.Linear(7, 5)), torch.randn(4, 7))


@program
def linear_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        learn(nn.Sequential(nn.Linear(7, 5), nn.LayerNorm(5), nn.Linear(5, 3)), torch.randn(4, 7))
        learn(nn.Conv2d(4, 6, 3), torch.randn(2, 4, 9, 9))


@program
def linear_float64():
    learn(nn.Linear(7, 5).double(), torch.randn(4, 7, dtype=torch.float64))


@program
def linear_quantised():
    torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(16, 8)), {nn.Linear}, torch.qint8)(torch.randn(4, 16))


@program
def bilinear():
    learn(nn.Bilinear(4, 5, 6), torch.randn(3, 4), torch.randn(3, 5))


@program
def embeddings():
    learn(nn.Embedding(10, 4), torch.arange(6).reshape(2, 3))
    learn(nn.EmbeddingBag(10, 4, mode="mean"), torch.arange(6).reshape(2, 3))


@program
def norms():
    learn(nn.Sequential(nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm(5), nn.Softmax(-1)), torch.randn(2, 4, 5, 5))


@program
def distances():
    learn(torch.cdist, torch.randn(30, 4), torch.randn(40, 4))
    learn(nn.CosineSimilarity(), torch.randn(3, 4), torch.randn(3, 4))
    torch.corrcoef(torch.randn(3, 8)), torch.cov(torch.randn(3, 8)), torch.linalg.norm(torch.randn(3, 3))


@program
def checkpointed():
    model = nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 7))
    for reentrant in True, False:
        learn(lambda x: checkpoint(model, x, use_reentrant=reentrant), torch.randn(4, 7))


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad


@program
def function_of_own():
    weight = torch.randn(7, 5, requires_grad=True)
    learn(lambda x: Twice.apply(x, weight), torch.randn(4, 7))


@program
def second_derivative():
    x, weight = torch.randn(4, 7, requires_grad=True), torch.randn(7, 7)
    grad, = torch.autograd.grad((x @ weight).tanh().sum(), x, create_graph=True)
    grad.square().sum().backward()


def loss_of(weight, x):
    return torch.tanh(x @ weight).sum()


WEIGHT, VECTOR, ROWS = torch.randn(5, 3), torch.randn(5), torch.randn(4, 5)


@program
def functional_grad():
    torch.func.grad(loss_of)(WEIGHT, ROWS)
    torch.func.grad_and_value(loss_of)(WEIGHT, ROWS)


@program
def functional_vmap():
    torch.func.vmap(lambda x: x @ WEIGHT)(ROWS)
    torch.func.vmap(lambda x: F.linear(x, WEIGHT.t()))(ROWS[None])
    torch.func.vmap(lambda x, y: torch.mm(x, y))(torch.randn(2, 4, 5), torch.randn(2, 5, 3))


@program
def functional_vmap_of_grad():
    torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(WEIGHT, torch.randn(2, 4, 5))


@program
def functional_jvp():
    torch.func.jvp(lambda weight: loss_of(weight, ROWS), (WEIGHT,), (torch.ones_like(WEIGHT),))


@program
def functional_vjp():
    _, back = torch.func.vjp(lambda weight: ROWS @ weight, WEIGHT)
    back(torch.ones(4, 3))


@program
def functional_jacrev():
    torch.func.jacrev(lambda weight: ROWS @ weight)(WEIGHT)


@program
def functional_jacfwd():
    torch.func.jacfwd(lambda weight: ROWS @ weight)(WEIGHT)


@program
def functional_hessian():
    torch.func.hessian(lambda weight: loss_of(weight, ROWS))(WEIGHT)


@program
def functional_nested():
    torch.func.grad(lambda weight: torch.func.vmap(torch.func.grad(lambda x: loss_of(weight, x)))(ROWS).square().sum())(WEIGHT)


@program
def functional_call():
    model = nn.Sequential(nn.Linear(7, 5), nn.Linear(5, 3))
    torch.func.functional_call(model, dict(model.named_parameters()), (torch.randn(4, 7),)).sum().backward()


@program
def functional_convolution():
    torch.func.vmap(torch.func.grad(lambda w, x: F.conv2d(x[None], w).square().sum()), in_dims=(None, 0))(
        torch.randn(4, 3, 3, 3), torch.randn(2, 3, 8, 8))


@program
def functional_attention():
    torch.func.vmap(lambda x: F.scaled_dot_product_attention(x, x, x))(torch.randn(3, 2, 4, 5, 8))


@program
def scripted():
    model = torch.jit.trace(nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3)), torch.randn(4, 7))
    for _ in range(3):
        model(torch.randn(4, 7))


@program
def optimised():
    model = nn.Linear(7, 5)
    optimizer = torch.optim.SGD(model.parameters())
    learn(model, torch.randn(4, 7))
    optimizer.step()
    if hasattr(torch.optim, "Muon"):
        weight = nn.Parameter(torch.randn(4, 4))
        muon = torch.optim.Muon([weight])
        weight.grad = torch.randn(4, 4)
        muon.step()


@program
def low_rank():
    torch.pca_lowrank(torch.randn(12, 6), q=3)


@program
def affine_grid():
    F.affine_grid(torch.ones(2, 2, 3), (2, 1, 4, 4), align_corners=False)


@program
def linear_algebra():
    a = torch.eye(4) * 3 + torch.ones(4, 4)
    torch.linalg.inv(a), torch.linalg.solve(a, a), torch.linalg.qr(a), torch.linalg.svd(a), torch.linalg.matrix_exp(a)
    torch.linalg.cholesky(a), torch.linalg.eigh(a), torch.linalg.pinv(a)


@program
def losses():
    learn(lambda x: F.cross_entropy(x, torch.arange(4) % 3), torch.randn(4, 3))
    log_probabilities = torch.randn(9, 2, 5, requires_grad=True).log_softmax(2)
    F.ctc_loss(log_probabilities, torch.ones(2, 3, dtype=torch.long), torch.tensor([9, 9]), torch.tensor([3, 3])).backward()


@program
def folded_windows():
    learn(lambda x: F.fold(F.unfold(x, 3), (9, 9), 3), torch.randn(2, 4, 9, 9))
    learn(lambda x: F.grid_sample(x, torch.zeros(2, 4, 4, 2), align_corners=False), torch.randn(2, 4, 9, 9))


@program
def compiled():
    """Programs that aot_eager makes are calls of the same operators; what Inductor makes of them costs a compiler."""
    model = torch.compile(nn.Sequential(nn.Linear(7, 5), nn.GELU(), nn.Linear(5, 3)), backend="aot_eager")
    learn(model, torch.randn(4, 7))


def add_newer_formulas():
    """What 2.3 does not have yet."""
    for way in "", "_backward":
        known = flop_registry[getattr(torch.ops.aten, f"_scaled_dot_product_flash_attention{way}")]
        flop_registry.setdefault(getattr(torch.ops.aten, f"{CPU_ATTENTION}{way}"), known)


def counted(name, function):
    torch.manual_seed(0)
    with torch.autograd.profiler.record_function(name):
        function()
    with torch.autograd.profiler.record_function(f"counted {name}"), FlopCounterMode(display=False) as counter:
        function()
    return {str(operator).replace("aten.", "aten::"): n for operator, n in counter.get_flop_counts().get("Global", {}).items()}


def count_all(programs):
    torch.set_num_threads(1)
    add_newer_formulas()
    warnings.simplefilter("ignore")
    print(json.dumps({name: counted(name, function) for name, function in programs.items()
                      if name in (sys.argv[1:] or programs)}))


if __name__ == "__main__":
    count_all(PROGRAMS)

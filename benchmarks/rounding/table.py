"""The ops that are taken to the extremes, by both frameworks' names. Another one is another row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Op:
    """One op of both frameworks; a framework may have several for it, or none.

    ``torch``: names of ``torch.ops.aten`` with their overloads; ``paddle``: names of ``paddle._C_ops``,
    special methods of a tensor, or functions of paddle by their full names, where they take several ops.
    """

    torch: tuple[str, ...] = ()
    paddle: tuple[str, ...] = ()
    torch_writes: tuple[int, ...] = ()  # positions of what the op writes into besides its results
    paddle_writes: tuple[int, ...] = ()
    torch_adds: int | None = (
        None  # position of a bias that paddle adds by itself, to a result that is rounded
    )
    broadcasts: bool = (
        False  # only what is broadcast is of interest, whose backward sums; torch calls sum for that
    )
    sparse: Mapping[str, int] | None = None  # by side, position of the flag for gradients kept by row

    def by_row(self, side: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether its gradients are kept by row: they cannot be cast."""
        if self.sparse is None:
            return False
        position = self.sparse[side]
        return bool(args[position] if len(args) > position else kwargs.get("sparse"))


def _names(words: str) -> tuple[str, ...]:
    return tuple(words.split())


PRODUCTS = (
    Op(("linear",), ("linear", "linear_v2")),
    Op(_names("mm bmm mv dot vdot"), _names("matmul bmm mv dot __matmul__ __rmatmul__")),
    Op(_names("addmm addbmm baddbmm addmv"), _names("addmm baddbmm")),
    Op(("bilinear",), ("bilinear",)),
    Op((), ("einsum",)),  # torch's is a bmm
    Op(
        ("convolution",),
        _names(
            "conv2d conv3d depthwise_conv2d conv2d_transpose conv3d_transpose depthwise_conv2d_transpose "
            "conv2d_transpose_bias"
        ),
        torch_adds=2,
    ),
    Op(("_cdist_forward",), ("dist",)),
)
SUMS = (
    Op(_names("mean mean.dim"), _names("mean mean_all")),
    Op(_names("sum sum.dim_IntList nansum"), _names("sum nansum")),
    Op(
        _names("var.correction std.correction var_mean.correction std_mean.correction"),
        _names("tensor.stat.var tensor.stat.std var std"),
    ),
    Op(_names("linalg_vector_norm norm.Scalar norm.ScalarOpt_dim"), _names("p_norm frobenius_norm l1_norm")),
    Op((), ("squared_l2_norm",)),
    Op(_names("prod prod.dim_int cumsum cumprod trace"), _names("prod cumsum cumprod trace")),
    Op(_names("logsumexp logcumsumexp"), _names("logsumexp logcumsumexp")),
    Op(_names("avg_pool1d avg_pool2d avg_pool3d"), _names("pool2d pool3d lp_pool2d")),
    Op(_names("_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d")),
    Op(("embedding",), ("embedding",), sparse={"torch": 4, "paddle": 3}),  # backward sums
)
NORMS = (
    Op(("_softmax",), ("softmax",)),
    Op(("_log_softmax",), ("log_softmax",)),
    Op(("native_layer_norm",), ("layer_norm",)),
    Op(("native_batch_norm",), ("batch_norm",), torch_writes=(3, 4), paddle_writes=(1, 2)),
    Op(("native_group_norm",), ("group_norm",)),
    Op((), ("instance_norm",)),  # torch's is a batch norm
    Op(("rms_norm",), ("rms_norm",)),
)
_SAME = _names(
    "exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfinv "
    "sigmoid gelu silu mish softplus elu rsqrt atan2 lgamma digamma"
)
ELEMENTWISE = (
    *(Op((name,), (name,)) for name in _SAME),
    Op(_names("exp2 erfc logaddexp")),
    Op((), _names("swish celu selu softsign stanh tanh_shrink")),
    Op(("log_sigmoid_forward",), ("logsigmoid",)),
    Op(_names("hardswish hardsigmoid"), _names("hardswish hardsigmoid")),
    Op(
        _names("pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar"),
        _names("pow elementwise_pow __pow__ __rpow__"),
    ),
)
LOSSES = (
    Op(("binary_cross_entropy",), _names("bce_loss sigmoid_cross_entropy_with_logits")),
    Op(_names("nll_loss_forward nll_loss2d_forward"), _names("nll_loss cross_entropy_with_softmax")),
    Op(_names("mse_loss smooth_l1_loss huber_loss soft_margin_loss"), _names("huber_loss kldiv_loss")),
    Op(("cosine_similarity",)),
)
OTHERS = (
    Op(_names("lstm.input gru.input rnn_tanh.input rnn_relu.input"), ("rnn",)),
    Op(_names("grid_sampler_2d grid_sampler_3d"), ("grid_sample",)),
    Op((), _names("add __add__ __radd__"), broadcasts=True),
    Op((), _names("subtract __sub__ __rsub__"), broadcasts=True),
    Op((), _names("multiply __mul__ __rmul__"), broadcasts=True),
    Op((), _names("divide __truediv__ __rtruediv__"), broadcasts=True),
)
OPS = (*PRODUCTS, *SUMS, *NORMS, *ELEMENTWISE, *LOSSES, *OTHERS)

"""Functions and tensor functions that correspond."""

from __future__ import annotations

from collections.abc import Iterable

from parfocal.backends.counterparts.entry import ArgumentPair, Category, Counterpart, Relation, pairs
from parfocal.backends.vocabulary.meanings import functional_ops

_RANKS = (1, 2, 3)
_TORCH, _PADDLE = "torch.nn.functional", "paddle.nn.functional"

# Of the same name in both homes of functions.
FUNCTIONS = (
    *("relu", "relu6", "leaky_relu", "prelu", "rrelu", "elu", "celu", "selu", "gelu", "silu", "mish"),
    *("sigmoid", "hardsigmoid", "hardswish", "tanh", "hardtanh", "tanhshrink", "hardshrink", "softshrink"),
    *("softplus", "softsign", "glu", "softmax", "log_softmax", "gumbel_softmax"),
    *("layer_norm", "batch_norm", "group_norm", "instance_norm", "local_response_norm", "rms_norm"),
    *("normalize", "linear", "bilinear", "dropout", "dropout2d", "dropout3d", "alpha_dropout"),
    *(f"conv{rank}d" for rank in _RANKS),
    *(f"{name}_pool{rank}d" for name in ("max", "avg") for rank in _RANKS),
    *(f"adaptive_{name}_pool{rank}d" for name in ("max", "avg") for rank in _RANKS),
    *("scaled_dot_product_attention", "embedding", "one_hot", "interpolate", "upsample", "grid_sample"),
    *("affine_grid", "pad", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold", "fold"),
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy"),
    *("binary_cross_entropy_with_logits", "kl_div", "ctc_loss", "cosine_similarity", "pairwise_distance"),
    *("cosine_embedding_loss", "margin_ranking_loss", "hinge_embedding_loss", "triplet_margin_loss"),
    *("multi_margin_loss", "soft_margin_loss", "gaussian_nll_loss", "poisson_nll_loss"),
)
RENAMED_FUNCTIONS = {
    **{f"conv_transpose{rank}d": f"conv{rank}d_transpose" for rank in _RANKS},
    "logsigmoid": "log_sigmoid",
    "threshold": "thresholded_relu",
    "huber_loss": "smooth_l1_loss",
}

# Of the same name in torch and paddle.
TENSOR_FUNCTIONS = (
    *("add", "abs", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "erf", "square", "sign", "floor", "ceil"),
    *("round", "neg", "pow", "floor_divide", "remainder", "maximum", "minimum", "not_equal", "equal"),
    *("less_equal", "greater_equal", "logical_not", "logical_and", "logical_or", "logical_xor"),
    *("isnan", "isinf", "isfinite", "matmul", "mm", "bmm", "einsum", "dot", "outer", "reshape", "flatten"),
    *("squeeze", "unsqueeze", "stack", "split", "chunk", "unbind", "tile", "flip", "roll", "clone"),
    *("sum", "mean", "median", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "var", "std"),
    *("norm", "cumsum", "cumprod", "logsumexp", "all", "any", "topk", "sort", "argsort", "unique"),
    *("where", "masked_fill", "masked_select", "nonzero", "index_select", "tril", "triu", "diagonal"),
    *("meshgrid", "arange", "linspace", "zeros", "ones", "full", "empty", "eye", "zeros_like"),
    *("ones_like", "full_like", "empty_like", "rand", "randn", "randint", "randperm", "bernoulli"),
    *("multinomial", "repeat_interleave", "save", "load", "no_grad"),
)
# torch's name -> paddle's.
RENAMED_TENSOR_FUNCTIONS = {
    "cat": "concat",
    "permute": "transpose",
    "transpose": "swapaxes",
    "clamp": "clip",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "lt": "less_than",
    "le": "less_equal",
    "gt": "greater_than",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
    "gather": "take_along_axis",
    "scatter": "put_along_axis",
    "tensor": "to_tensor",
    "from_numpy": "to_tensor",
    "as_tensor": "to_tensor",
    "index_copy": "scatter",
    "manual_seed": "seed",
    "Tensor.view": "reshape",
    "Tensor.repeat": "tile",
    "Tensor.expand": "expand",
    "Tensor.permute": "transpose",
}
# A second name of paddle for what torch has under one.
SECOND_NAMES = {"index_select": "gather"}
# What paddle has once more with torch's arguments.
COMPATIBLE = (
    *("max", "min", "median", "sort", "split"),
    *("nn.functional.pad", "nn.functional.scaled_dot_product_attention"),
)
_WINDOW = pairs(kernel_size="kernel_sizes", stride="strides", padding="paddings", dilation="dilations")
_MOMENTUM = ArgumentPair("momentum", "momentum", Relation.COMPLEMENT)
_EXCLUSIVE = ArgumentPair("count_include_pad", "exclusive", Relation.OPPOSITE)
_CORRECTION = ArgumentPair("correction", "unbiased", Relation.CONVERTED, ((1, True), (0, False)))
_FORMULA = ArgumentPair("approximate", "approximate", Relation.CONVERTED, (("none", False), ("tanh", True)))
# How arguments correspond where neither their names nor the usual translations tell.
ARGUMENTS: dict[str, tuple[ArgumentPair, ...]] = {
    "torch.cat": pairs(tensors="x"),
    "torch.stack": pairs(tensors="x"),
    "torch.permute": pairs(dims="perm"),
    "torch.gather": pairs(input="arr", index="indices"),
    "torch.scatter": pairs(input="arr", index="indices", src="values"),
    "torch.split": pairs(tensor="x", split_size_or_sections="num_or_sections"),
    "torch.matmul": pairs(input="x", other="y"),
    "torch.where": pairs(condition="condition", input="x", other="y"),
    "torch.std": (_CORRECTION,),
    "torch.var": (_CORRECTION,),
    "torch.nn.functional.gelu": (_FORMULA,),
    "torch.nn.functional.batch_norm": (_MOMENTUM,),
    "torch.nn.functional.instance_norm": (_MOMENTUM,),
    **{f"torch.nn.functional.avg_pool{rank}d": (_EXCLUSIVE,) for rank in _RANKS},
    "torch.dot": pairs(tensor="y"),
    "torch.outer": pairs(vec2="y"),
    "torch.tile": pairs(dims="repeat_times"),
    "torch.linspace": pairs(end="stop", steps="num"),
    "torch.eye": pairs(n="num_rows", m="num_columns"),
    "torch.save": pairs(f="path"),
    "torch.load": pairs(f="path"),
    "torch.from_numpy": pairs(ndarray="data"),
    "torch.index_copy": pairs(index="index", source="updates"),
    "torch.nn.functional.gumbel_softmax": pairs(logits="x"),
    "torch.nn.functional.bilinear": pairs(input1="x1", input2="x2"),
    "torch.nn.functional.affine_grid": pairs(size="out_shape"),
    "torch.nn.functional.unfold": _WINDOW,
    "torch.nn.functional.fold": (*pairs(output_size="output_sizes"), *_WINDOW),
    "torch.nn.functional.pairwise_distance": pairs(x1="x", x2="y"),
    "torch.nn.functional.margin_ranking_loss": pairs(input1="input", input2="other"),
    "torch.nn.functional.triplet_margin_loss": pairs(anchor="input"),
    "torch.nn.functional.gaussian_nll_loss": pairs(var="variance"),
    "torch.nn.functional.huber_loss": pairs(target="label", delta="delta"),
    "torch.nn.functional.smooth_l1_loss": pairs(target="label", beta="delta"),
    "torch.nn.functional.scaled_dot_product_attention": pairs(dropout_p="dropout_p"),
    "torch.nn.functional.ctc_loss": pairs(targets="labels", target_lengths="label_lengths"),
}


def functions() -> list[Counterpart]:
    """Every function that the tables know."""
    return [
        *_entries(Category.FUNCTION, _TORCH, _PADDLE, ((name, name) for name in FUNCTIONS)),
        *_entries(Category.FUNCTION, _TORCH, _PADDLE, RENAMED_FUNCTIONS.items()),
        *_entries(Category.TENSOR, "torch", "paddle", ((name, name) for name in TENSOR_FUNCTIONS)),
        *_entries(Category.TENSOR, "torch", "paddle", RENAMED_TENSOR_FUNCTIONS.items()),
        *_entries(Category.TENSOR, "torch", "paddle", SECOND_NAMES.items()),
        *(Counterpart(Category.TENSOR, f"torch.{name}", f"paddle.compat.{name}") for name in COMPATIBLE),
    ]


def _entries(
    category: Category, torch: str, paddle: str, names: Iterable[tuple[str, str]]
) -> list[Counterpart]:
    known = functional_ops()
    return [
        Counterpart(
            category,
            f"{torch}.{ours}",
            f"{paddle}.{theirs}",
            known.get(theirs, known.get(ours.rpartition(".")[2])),
            arguments=ARGUMENTS.get(f"{torch}.{ours}", ()),
        )
        for ours, theirs in names
    ]

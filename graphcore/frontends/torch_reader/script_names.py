"""Names of the arguments of common ops, which TorchScript does not write."""

from __future__ import annotations

from typing import Final

_CONV: Final = "input weight bias stride padding dilation groups"
_POOL: Final = "input kernel_size stride padding"
_TABLE: Final = {
    "conv1d conv2d conv3d": _CONV,
    "_convolution": "input weight bias stride padding dilation transposed output_padding groups benchmark deterministic cudnn_enabled allow_tf32",
    "conv_transpose1d conv_transpose2d conv_transpose3d": "input weight bias stride padding output_padding groups dilation",
    "linear": "input weight bias",
    "batch_norm": "input weight bias running_mean running_var training momentum eps cudnn_enabled",
    "layer_norm": "input normalized_shape weight bias eps cudnn_enable",
    "group_norm": "input num_groups weight bias eps cudnn_enabled",
    "max_pool1d max_pool2d max_pool3d": f"{_POOL} dilation ceil_mode",
    "avg_pool1d avg_pool2d avg_pool3d": f"{_POOL} ceil_mode count_include_pad divisor_override",
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d": "input output_size",
    "flatten": "input start_dim end_dim",
    "view reshape expand": "input size",
    "permute": "input dims",
    "transpose": "input dim0 dim1",
    "softmax log_softmax": "input dim dtype",
    "dropout dropout_ feature_dropout": "input p train",
    "embedding": "weight indices padding_idx scale_grad_by_freq sparse",
    "cat stack": "tensors dim",
    "split chunk": "input size dim",
    "slice": "input dim start end step",
    "select": "input dim index",
    "unsqueeze squeeze": "input dim",
    "add add_ sub sub_ rsub": "input other alpha",
    "mul mul_ div div_ matmul bmm mm pow": "input other",
    "addmm": "input mat1 mat2 beta alpha",
    "mean sum": "input dim keepdim dtype",
    "hardtanh hardtanh_": "input min_val max_val",
    "size": "input dim",
    "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale enable_gqa",
    "lstm": "input hx params has_biases num_layers dropout train bidirectional batch_first",
    "gru rnn_tanh rnn_relu": "input hx params has_biases num_layers dropout train bidirectional batch_first",
    "upsample_nearest2d": "input output_size scale_factors",
    "upsample_bilinear2d": "input output_size align_corners scale_factors",
    "relu relu_ sigmoid tanh gelu silu silu_ dim": "input",
}
_NAMES: Final = {op: tuple(names.split()) for ops, names in _TABLE.items() for op in ops.split()}


def argument_name(op: str, number: int) -> str:
    """The name of an argument by its place, "" if it is not known."""
    names = _NAMES.get(op.removeprefix("aten."), ())
    return names[number] if number < len(names) else ""

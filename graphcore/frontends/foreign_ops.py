"""Traits of ops of other frameworks, from which views name layers and fold what serves them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, get_args

from graphcore.op_names import plain_op
from graphcore.traits import NO_TRAITS, Layer, Memory, Role, Traits

_LAYERS: Final[dict[Layer, str]] = {
    "product": "matmul gemm mm bmm addmm baddbmm linear dense dot dot_general fully_connected batch_matmul fullyconnected innerproduct "
    "inner_product einsum matmulinteger qgemm qlinearmatmul einsumdense tensordot mv addmv qlinear fusedmatmul fusedgemm "
    "scaled_dot_product_attention _scaled_mm packed_linear matmulnbits",
    "convolution": "conv convolution conv1d conv2d conv3d conv_general_dilated _convolution convinteger qlinearconv fusedconv conv_2d conv_3d "
    "groupconvolution deformconv",
    "depthwise convolution": "depthwise_conv_2d depthwiseconv2d depthwiseconv1d separableconv2d separableconv1d depthwise_convolution",
    "transposed convolution": "convtranspose transpose_conv conv_transpose1d conv_transpose2d conv_transpose3d conv2dtranspose "
    "conv1dtranspose conv3dtranspose convolutionbackpropdata deconvolution deconv",
    "attention": "multiheadattention groupqueryattention groupedqueryattention",
    "bias": "bias_add biasadd",
    "normalization": "batchnormalization batch_norm batch_norm_inference native_batch_norm _native_batch_norm_legit_no_training layer_norm "
    "native_layer_norm layernormalization group_norm native_group_norm groupnormalization instancenormalization instance_norm "
    "simplifiedlayernormalization skiplayernormalization skipsimplifiedlayernormalization rmsnormalization rms_norm lrn "
    "lpnormalization meanvariancenormalization mvn batchnorm batchnorminference unitnormalization cudnn_batch_norm l2_normalization",
    "pooling": "maxpool averagepool globalaveragepool globalmaxpool max_pool2d max_pool1d max_pool3d avg_pool1d avg_pool2d avg_pool3d "
    "max_pool2d_with_indices adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d _adaptive_avg_pool2d average_pool_2d max_pool_2d "
    "averagepooling2d averagepooling1d maxpooling2d maxpooling1d globalaveragepooling2d globalaveragepooling1d globalmaxpooling2d "
    "avgpool lppool pooling reduce_window_max reduce_window_sum",
    "resizing": "resize upsample upsample_nearest2d upsample_bilinear2d resize_bilinear resize_nearest_neighbor upsampling2d interpolate "
    "_upsample_bilinear2d_aa gridsample image_resize",
    "concatenation": "concat concatenate cat concatenation",
    "addition": "add sum add_ add_any eltwise",
    "scaling": "mul multiply mul_ scale",
    "softmax": "softmax _softmax softmax_default",
    "sigmoid": "sigmoid logistic hardsigmoid hard_sigmoid hardsigmoid_",
    "tanh": "tanh",
}
_ELEMENTWISE: Final = frozenset(
    [
        "add",
        "sub",
        "subtract",
        "mul",
        "multiply",
        "div",
        "divide",
        "true_divide",
        "pow",
        "abs",
        "neg",
        "negate",
        "exp",
        "exp2",
        "log",
        "log1p",
        "expm1",
        "sqrt",
        "rsqrt",
        "square",
        "relu",
        "relu6",
        "gelu",
        "silu",
        "swish",
        "mish",
        "elu",
        "selu",
        "celu",
        "leakyrelu",
        "leaky_relu",
        "prelu",
        "sigmoid",
        "logistic",
        "tanh",
        "erf",
        "sin",
        "cos",
        "tan",
        "floor",
        "ceil",
        "round",
        "sign",
        "clip",
        "clamp",
        "minimum",
        "maximum",
        "min",
        "max",
        "where",
        "select",
        "select_n",
        "and",
        "or",
        "xor",
        "not",
        "equal",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "greater",
        "less",
        "hardswish",
        "hardsigmoid",
        "softplus",
        "softsign",
        "thresholdedrelu",
        "reciprocal",
        "add_",
        "mul_",
        "relu_",
        "integer_pow",
        "squared_difference",
        "hard_swish",
        "activation",
    ]
)
_ALIASES: Final = frozenset(
    [
        "identity",
        "cast",
        "castlike",
        "dropout",
        "alias",
        "alias_copy",
        "clone",
        "detach",
        "contiguous",
        "lift_fresh_copy",
        "_to_copy",
        "to",
        "type_as",
        "convert",
        "convert_element_type",
        "stop_gradient",
        "copy",
        "copy_",
        "native_dropout",
        "optimization_barrier",
        "bitcast_convert",
        "lift",
        "lift_fresh",
        "_assert_tensor_metadata",
        "quantize",
        "quantizelinear",
        "dequantizelinear",
        "dequantize",
        "dynamicquantizelinear",
        "fakequantize",
        "quantize_per_tensor",
        "dequantize_per_tensor",
        "quantize_per_channel",
        "dequantize_per_channel",
        "alias_default",
        "sharding_constraint",
        "identityn",
        "convertlike",
        "noop",
        "stopgradient",
        "inputlayer",
        "activityregularization",
        "spatialdropout2d",
        "gaussiannoise",
        "copy_p",
    ]
)
_SHAPES: Final = frozenset(["shape", "size", "sym_size", "shapeof", "sym_numel", "rank", "get_dimension_size", "numel"])
_FILLED: Final = frozenset(
    [
        "constant",
        "constantofshape",
        "range",
        "arange",
        "iota",
        "full",
        "zeros",
        "ones",
        "scalar_tensor",
        "empty",
        "eyelike",
        "fill",
        "zeros_like",
        "ones_like",
        "full_like",
        "eye",
        "linspace",
        "const",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "lift_constant",
    ]
)
_ROLES: Final[dict[str, Role]] = {
    "input": "placeholder",
    "output": "return",
    "parameter": "variable",
    "buffer": "variable",
    "constant": "constant",
}
_LAYER_OF: Final[dict[str, Layer]] = {word: layer for layer, words in _LAYERS.items() for word in words.split()}
_RANDOM: Final = re.compile(r"rand|normal_|uniform|dropout|bernoulli|multinomial|rng|exponential_")
_TASKS: Final = ("dask.", "dot.", "networkx.")
"""The domains whose ops are tasks and labels of general graphs: no layers, and no helpers of some."""
assert set(_LAYERS) <= set(get_args(Layer))


def is_task(op: str) -> bool:
    """True for a node of a general graph, which has a label instead of an op."""
    return op.startswith(_TASKS)


@lru_cache(maxsize=8192)
def draws_at_random(op: str) -> bool:
    """True for an op whose results are random."""
    return _RANDOM.search(plain_op(op).lower()) is not None


@lru_cache(maxsize=8192)
def foreign_traits(op: str, kind: str = "op") -> Traits:
    """The traits of an op by its name, in the role that a kind of node has."""
    role = _ROLES.get(kind)
    if role is not None:
        return Traits(role=role)
    if is_task(op):
        return NO_TRAITS
    word = plain_op(op).lower()
    if word in _SHAPES:
        return Traits(needs_only_shapes=True)
    if word in _FILLED:
        return Traits(role="constant") if word in {"constant", "const"} else Traits(needs_only_shapes=word.endswith("_like"))
    layer: Layer = _LAYER_OF.get(word, "")
    memory: Memory = "alias" if word in _ALIASES else "unknown"
    elementwise = word in _ELEMENTWISE
    if not layer and memory == "unknown" and not elementwise:
        return NO_TRAITS
    return Traits(layer=layer, memory=memory, elementwise=elementwise)

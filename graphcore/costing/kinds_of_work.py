"""The work of ops of other frameworks, by their words."""

from __future__ import annotations

from typing import Final

_KINDS: Final = {
    "moves": "reshape transpose permute t view flatten concat concatenate cat concatenation slice strided_slice stridedslice dynamic_slice "
    "dynamic_update_slice gather gathernd gatherelements gather_nd index_select embedding pad mirrorpad split unbind unpack pack stack chunk "
    "squeeze unsqueeze expand expand_dims expanddims broadcast broadcast_in_dim broadcast_to broadcastto tile repeat select narrow unfold "
    "roll flip rev reverse scatter scatternd scatterelements index slice_scatter unflatten swapaxes movedim depthtospace spacetodepth "
    "space_to_depth depth_to_space pixel_shuffle pixel_unshuffle space_to_batch_nd batch_to_space_nd topk onehot one_hot tuple "
    "get_tuple_element getitem split_with_sizes resize_nearest_neighbor as_strided unsafe_split tensor_split masked_fill tril triu index_put "
    "sort zeropadding2d zeropadding1d cropping2d view_as permute_dims expand_as reshape_as tuple_construct return arange zeros ones new_ones "
    "constantofshape fill_ "
    "new_zeros full iota rng_bit_generator random_bits random_wrap random_unwrap output fill range setitem tensor clone empty empty_like to new_full meshgrid",
    "reductions": "reduce_mean reducemean reduce_sum reducesum reduce_max reducemax reduce_min reducemin reduce_prod reduceprod mean amax "
    "amin prod var std var_mean cumsum argmax argmin reducel1 reducel2 norm reduce reduce_and reduce_or logsumexp globalaveragepooling2d "
    "cumlogsumexp cumprod any all reducelogsumexp diff",
    "elementwise": "exponential and or xor not eq __and__ __or__ __xor__ logical_and logical_or logical_not bitwise_and bitwise_or "
    "bitwise_not exponential_minus_one log_plus_one logistic cosine sine power remainder rem fmod mod isnan isfinite isinf erf_inv erfc atan2 "
    "rsub addcmul addcdiv lerp fake_quant hard_tanh hardtanh gelu_new compare cbrt acos asin atan cosh sinh floor_divide clamp_min clamp_max "
    "log_softmax threshold threshold_backward shift_left shift_right round_nearest_even nextafter population_count",
}
"""The work of ops of other frameworks whose traits do not tell it: none, each element of the input once, or of the result."""
KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words.split()}

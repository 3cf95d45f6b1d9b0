"""The modules of TensorFlow 1's namespaces, and of names that lie elsewhere.

Nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import Final

from graphcore.tf1.names.internal import ALIASES, INTERNAL

_OWN: Final[dict[str, str]] = {
    "app": "graphcore.tf1.app",
    "bitwise": "",
    "compat": "graphcore.tf1.compat",
    "compat.v1": "graphcore",
    "contrib": "",
    "contrib.factorization": "graphcore.tf1.contrib.factorization",
    "contrib.layers": "graphcore.tf1.contrib.layers",
    "contrib.layers.utils": "graphcore.tf1.contrib.layers.utils",
    "contrib.learn": "",
    "contrib.learn.preprocessing": "",
    "contrib.losses": "graphcore.tf1.contrib.losses",
    "contrib.metrics": "graphcore.tf1.contrib.metrics",
    "contrib.legacy_seq2seq": "graphcore.tf1.contrib.legacy_seq2seq",
    "contrib.rnn": "graphcore.tf1.nn.rnn",
    "contrib.signal": "",
    "contrib.slim": "",
    "contrib.slim.learning": "graphcore.tf1.contrib.slim.learning",
    "contrib.slim.model_analyzer": "graphcore.tf1.contrib.slim.model_analyzer",
    "contrib.slim.prefetch_queue": "graphcore.tf1.contrib.slim.prefetching",
    "contrib.slim.queues": "graphcore.tf1.contrib.slim.queues",
    "contrib.training": "graphcore.tf1.contrib.hparams",
    "contrib.seq2seq": "graphcore.tf1.contrib.seq2seq",
    "contrib.lookup": "graphcore.tf1.lookup",
    "lookup": "graphcore.tf1.lookup",
    "flags": "graphcore.tf1.flags",
    "data": "graphcore.tf1.data",
    "data.experimental": "graphcore.tf1.data.transformations",
    "contrib.data": "graphcore.tf1.data.transformations",
    "contrib.framework": "graphcore.tf1.contrib.framework",
    "contrib.framework.nest": "graphcore.tf1.nest",
    "contrib.tensorboard": "",
    "contrib.tensorboard.plugins": "",
    "contrib.tensorboard.plugins.projector": "graphcore.tf1.contrib.projector",
    "contrib.util": "",
    "distributions": "graphcore.tf1.distributions",
    "contrib.saved_model": "graphcore.tf1.saved_model",
    "debugging": "",
    "errors": "graphcore.errors",
    "graph_util": "graphcore.tf1.graph_util",
    "nest": "graphcore.tf1.nest",
    "test": "graphcore.tf1.test",
    "version": "",
    "gfile": "graphcore.tf1.gfile",
    "image": "graphcore.tf1.image",
    "metrics": "graphcore.tf1.metrics",
    "initializers": "graphcore.tf1.initializers",
    "io": "",
    "layers": "graphcore.tf1.layers",
    "linalg": "",
    "logging": "graphcore.tf1.logging",
    "losses": "graphcore.tf1.losses",
    "manip": "",
    "math": "",
    "nn": "graphcore.tf1.nn",
    "nn.rnn_cell": "",
    "python_io": "",
    "quantization": "",
    "random": "graphcore.tf1.random",
    "sparse": "",
    "signal": "",
    "spectral": "",
    "strings": "",
    "testing": "graphcore.testing",
    "summary": "graphcore.tf1.summary",
    "train": "",
    "train.queue_runner": "",
}
NAMESPACES: Final = dict.fromkeys(INTERNAL, "") | _OWN | ALIASES
"""The module of each namespace; "" for one that only holds what is listed under its name here."""

_SIGNAL: Final = (
    "dct",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
)
_REAL_SPECTRA: Final = ("irfft", "irfft2d", "irfft3d", "rfft", "rfft2d", "rfft3d")

NAMES: Final[dict[str, str]] = {
    "graphcore.tf1.arrays.layout": (
        "batch_to_space broadcast_dynamic_shape broadcast_static_shape concat depth_to_space ensure_shape expand_dims identity "
        "newaxis one_hot ones_like parallel_stack rank reshape shape size space_to_batch space_to_depth squeeze stack stop_gradient "
        "transpose zeros_like"
    ),
    "graphcore.tf1.arrays.slices": (
        "boolean_mask extract_image_patches gather gather_nd pad repeat reverse reverse_sequence slice sparse_to_dense split "
        "strided_slice unstack image.extract_image_patches=extract_image_patches manip.reverse=reverse"
    ),
    "graphcore.tf1.arrays.ranges": "eye fill lin_space=linspace linspace meshgrid range sequence_mask linalg.eye=eye",
    "graphcore.tf1.arrays.matrices": (
        "matrix_diag matrix_diag_part matrix_set_diag matrix_transpose tensordot linalg.diag=matrix_diag "
        "linalg.diag_part=matrix_diag_part linalg.set_diag=matrix_set_diag linalg.transpose=matrix_transpose"
    ),
    "graphcore.tf1.framework": (
        "add_to_collection add_to_collections colocate_with constant container control_dependencies convert_to_tensor device "
        "get_collection get_collection_ref get_static_value group name_scope no_op ones op_scope placeholder placeholder_with_default "
        "zeros contrib.util.constant_value=get_static_value"
    ),
    "graphcore.tf1.variables.assigning": (
        "assign assign_add assign_sub scatter_add scatter_div scatter_max scatter_min scatter_mul scatter_nd_add scatter_nd_sub "
        "scatter_nd_update scatter_sub scatter_update"
    ),
    "graphcore.tf1.variables.listing": (
        "all_variables global_variables global_variables_initializer initialize_all_tables initialize_all_variables "
        "initialize_local_variables initialize_variables is_variable_initialized local_variables local_variables_initializer "
        "model_variables moving_average_variables tables_initializer trainable_variables variables_initializer"
    ),
    "graphcore.tf1.gating": "tuple",
    "graphcore.tf1.variables.saving": "report_uninitialized_variables",
    "graphcore.tf1.variables.collections": "GraphKeys",
    "graphcore.tf1.strings": (
        "decode_raw reduce_join string_to_hash_bucket string_to_number substr strings.length=string_length strings.reduce_join=reduce_join "
        "strings.substr=substr strings.to_hash_bucket=string_to_hash_bucket strings.to_number=string_to_number"
    ),
    "graphcore.tf1.sparse": (
        "SparseTensor SparseTensorValue sparse_placeholder sparse_tensor_to_dense sparse_tensor_dense_matmul sparse_add sparse_reorder "
        "sparse_reshape sparse_concat sparse_slice sparse_softmax sparse_reduce_sum sparse_reduce_max sparse_fill_empty_rows string_split "
        "edit_distance nn.ctc_loss nn.ctc_greedy_decoder nn.ctc_beam_search_decoder sparse_retain "
        "sparse_transpose sparse_split sparse_maximum sparse_minimum sparse.transpose=sparse_transpose sparse.split=sparse_split "
        "sparse.maximum=sparse_maximum sparse.minimum=sparse_minimum "
        "sparse.retain=sparse_retain "
        "sparse.SparseTensor sparse.placeholder=sparse_placeholder sparse.to_dense=sparse_tensor_to_dense "
        "sparse.matmul=sparse_tensor_dense_matmul sparse.add=sparse_add sparse.reorder=sparse_reorder sparse.reshape=sparse_reshape "
        "sparse.slice=sparse_slice sparse.softmax=sparse_softmax sparse.reduce_sum=sparse_reduce_sum sparse.reduce_max=sparse_reduce_max "
        "sparse.fill_empty_rows=sparse_fill_empty_rows"
    ),
    "graphcore.tf1.nn.sparse_embeddings": "nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse contrib.layers.safe_embedding_lookup_sparse",
    "graphcore.tf1.checks": (
        "assert_equal assert_greater assert_greater_equal assert_integer assert_less assert_less_equal assert_near assert_negative "
        "assert_non_negative assert_non_positive assert_none_equal assert_positive assert_rank assert_rank_at_least assert_rank_in "
        "assert_scalar assert_type is_numeric_tensor verify_tensor_all_finite debugging.assert_all_finite=verify_tensor_all_finite"
    ),
    "graphcore.tf1.linalg.decompositions": (
        "cholesky_solve self_adjoint_eig self_adjoint_eigvals setdiff1d svd linalg.adjoint linalg.cholesky_solve linalg.eigh=self_adjoint_eig "
        "linalg.eigvalsh=self_adjoint_eigvals linalg.logdet linalg.pinv linalg.matrix_rank linalg.tridiagonal_solve linalg.LinearOperatorLowerTriangular linalg.lstsq linalg.matvec linalg.slogdet linalg.svd=svd matrix_solve_ls=lstsq"
    ),
    "graphcore.tf1.linalg.functions": "linalg.expm linalg.lu",
    "graphcore.tf1.nn": "linalg.l2_normalize math.l2_normalize=l2_normalize",
    "graphcore.tf1.printing": "print=print_",
    "graphcore.tf1.image.boxes": "image.non_max_suppression",
    "graphcore.tf1.contrib.learn": (
        "contrib.learn.ModeKeys contrib.learn.preprocessing.CategoricalVocabulary contrib.learn.preprocessing.VocabularyProcessor "
        "contrib.learn.preprocessing.tokenizer"
    ),
    "graphcore.tf1.contrib.buckets": "contrib.training.bucket contrib.training.bucket_by_sequence_length",
    "graphcore.tf1.math.clipping": "clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm",
    "graphcore.tf1.initializers": (
        "constant_initializer glorot_normal_initializer glorot_uniform_initializer ones_initializer orthogonal_initializer "
        "random_normal_initializer random_uniform_initializer truncated_normal_initializer uniform_unit_scaling_initializer "
        "variance_scaling_initializer zeros_initializer"
    ),
    "graphcore.tf1.math.elementwise": (
        "abs accumulate_n add add_n angle cast complex conj div divide equal exp floormod imag log log_sigmoid logical_xor matmul "
        "maximum minimum mod multiply negative not_equal pow real realdiv round saturate_cast scalar_mul sigmoid sqrt square "
        "subtract tanh to_bfloat16 to_complex128 to_complex64 to_double to_float to_int32 to_int64 truediv truncatediv "
        "truncatemod where"
    ),
    "graphcore.tf1.math.reductions": (
        "argmax argmin count_nonzero cumprod cumsum is_non_decreasing is_strictly_increasing lbeta norm reduce_all reduce_any "
        "reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum "
        "reduce_variance trace zero_fraction"
    ),
    "graphcore.tf1.math.segments": (
        "bincount confusion_matrix histogram_fixed_width sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum "
        "unsorted_segment_mean unsorted_segment_sqrt_n"
    ),
    "graphcore.tf1.signal": " ".join(
        [
            *[f"signal.{name} contrib.signal.{name}" for name in _SIGNAL],
            *[f"{space}{name}" for space in ("signal.", "spectral.") for name in _REAL_SPECTRA],
            *[f"spectral.{name}" for name in ("dct", "idct")],
        ]
    ),
    "graphcore.tf1.arrays.sorting": "argsort searchsorted sort",
    "graphcore.tf1.math.einsum": "einsum",
    "graphcore.tf1.random": (
        "get_seed multinomial random_crop random_gamma=gamma random_normal random_poisson=poisson random_shuffle=shuffle "
        "random_uniform set_random_seed truncated_normal"
    ),
    "graphcore.tf1.train.saving.checkpoint_saver": "train.CheckpointSaver",
    "graphcore.runtime.cluster.cluster": "DaskCluster LocalCluster",
    "graphcore.runtime.gpu.cuda": "gpu_devices",
    "graphcore.tf1.sessions": (
        "ConfigProto GPUOptions GraphOptions InteractiveSession OptimizerOptions disable_control_flow_v2 "
        "disable_eager_execution disable_resource_variables disable_v2_behavior disable_v2_tensorshape "
        "enable_resource_variables executing_eagerly"
    ),
    "graphcore.tf1.tensor_array": "TensorArray",
    "graphcore.tf1.functional": "foldl foldr map_fn scan",
    "graphcore.tf1.nn.rnn.dynamic": "nn.bidirectional_dynamic_rnn nn.dynamic_rnn nn.raw_rnn",
    "graphcore.tf1.nn.rnn": (
        "nn.static_bidirectional_rnn nn.static_rnn nn.rnn_cell.BasicLSTMCell nn.rnn_cell.BasicRNNCell nn.rnn_cell.DeviceWrapper "
        "nn.rnn_cell.DropoutWrapper nn.rnn_cell.GRUCell nn.rnn_cell.LSTMCell nn.rnn_cell.LSTMStateTuple nn.rnn_cell.MultiRNNCell "
        "nn.rnn_cell.RNNCell nn.rnn_cell.ResidualWrapper"
    ),
    "graphcore.tf1.variable_scopes": (
        "AUTO_REUSE VariableScope get_local_variable get_variable get_variable_scope make_template no_regularizer variable_op_scope "
        "variable_scope"
    ),
    "graphcore.tf1.values": (
        "Operation TensorShape Dimension OpError QUANTIZED_DTYPES VERSION GIT_VERSION COMPILER_VERSION bool errors.OpError=OpError version.VERSION=VERSION "
        "version.GIT_VERSION=GIT_VERSION version.COMPILER_VERSION=COMPILER_VERSION"
    ),
    "graphcore.tf1.train.writing": "train.write_graph io.write_graph",
    "graphcore.tf1.indexed_slices": "IndexedSlices IndexedSlicesValue convert_to_tensor_or_indexed_slices",
    "graphcore.tf1.train.optimizers.adaptive": "train.AdadeltaOptimizer train.AdagradDAOptimizer train.AdagradOptimizer train.RMSPropOptimizer",
    "graphcore.tf1.train.optimizers.proximal": "train.FtrlOptimizer train.ProximalAdagradOptimizer train.ProximalGradientDescentOptimizer",
    "graphcore.tf1.python_calls": "numpy_function py_func",
    "graphcore.tf1.records.examples": "train.BytesList train.Example train.Feature train.FeatureList train.FeatureLists train.Features "
    "train.FloatList train.Int64List train.SequenceExample",
    "graphcore.tf1.records.files": "python_io.TFRecordCompressionType python_io.TFRecordOptions python_io.TFRecordWriter python_io.tf_record_iterator",
    "graphcore.tf1.records.parsing": "FixedLenFeature FixedLenSequenceFeature VarLenFeature decode_csv parse_example parse_single_example",
    "graphcore.tf1.train.pipelines": "train.batch train.batch_join train.input_producer train.limit_epochs train.match_filenames_once "
    "train.range_input_producer train.shuffle_batch train.shuffle_batch_join train.slice_input_producer train.string_input_producer",
    "graphcore.tf1.queues.accumulators": "ConditionalAccumulator ConditionalAccumulatorBase SparseConditionalAccumulator "
    "sparse.SparseConditionalAccumulator",
    "graphcore.tf1.train.conditional_batches": "train.maybe_batch train.maybe_batch_join train.maybe_shuffle_batch "
    "train.maybe_shuffle_batch_join",
    "graphcore.tf1.queues.queues": "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
    "graphcore.tf1.queues.readers": "FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader WholeFileReader",
    "graphcore.tf1.train.optimizers": "train.AdamOptimizer train.GradientDescentOptimizer train.MomentumOptimizer train.Optimizer",
    "graphcore.checkpoints": "train.CheckpointReader",
    "graphcore.definitions.wire.meta_graph": "train.SaverDef",
    "graphcore.tf1.train.coordinators": "train.Coordinator train.LooperThread",
    "graphcore.tf1.train.hooks": "train.FeedFnHook train.FinalOpsHook train.LoggingTensorHook train.NanLossDuringTrainingError "
    "train.NanTensorHook train.SecondOrStepTimer train.StopAtStepHook",
    "graphcore.tf1.train.monitored": "train.ChiefSessionCreator train.MonitoredSession train.MonitoredTrainingSession train.Scaffold "
    "train.SessionCreator train.SingularMonitoredSession train.WorkerSessionCreator",
    "graphcore.tf1.train.queue_runners": "train.QueueRunner train.add_queue_runner train.start_queue_runners "
    "train.queue_runner.QueueRunner train.queue_runner.add_queue_runner train.queue_runner.start_queue_runners",
    "graphcore.tf1.train.saving_hooks": "train.CheckpointSaverHook train.CheckpointSaverListener train.StepCounterHook "
    "train.SummarySaverHook",
    "graphcore.tf1.train.supervisors": "train.Supervisor train.basic_train_loop",
    "graphcore.tf1.train.session_hooks": "train.SessionRunArgs train.SessionRunContext train.SessionRunHook train.SessionRunValues",
    "graphcore.tf1.train.averages": "train.ExponentialMovingAverage",
    "graphcore.tf1.train.replicas.asynchronous": "train.AsyncRun",
    "graphcore.tf1.train.replicas.parameter_servers": "train.replica_device_setter",
    "graphcore.tf1.train.replicas.replicate": "train.replicate",
    "graphcore.tf1.train.replicas.replicated": "train.Replicated",
    "graphcore.tf1.train.global_steps": "train.assert_global_step train.create_global_step train.get_global_step "
    "train.get_or_create_global_step train.global_step",
    "graphcore.tf1.train.custom_gradients": "NoGradient=NotDifferentiable NotDifferentiable RegisterGradient custom_gradient "
    "grad_pass_through no_gradient=NotDifferentiable",
    "graphcore.tf1.train.gradients": "AggregationMethod UnconnectedGradients hessians",
    "graphcore.tf1.train.schedules": "train.cosine_decay train.cosine_decay_restarts train.exponential_decay train.inverse_time_decay "
    "train.linear_cosine_decay train.natural_exp_decay train.noisy_linear_cosine_decay train.piecewise_constant "
    "train.piecewise_constant_decay train.polynomial_decay",
    "graphcore.tf1.train.saving.checkpoint_states": "train.CheckpointState train.NewCheckpointReader=CheckpointReader train.checkpoint_exists "
    "train.get_checkpoint_mtimes train.get_checkpoint_state train.latest_checkpoint train.list_variables train.load_checkpoint "
    "train.load_variable train.remove_checkpoint train.update_checkpoint_state",
    "graphcore.tf1.summary.messages": ("Event HistogramProto LogMessage SessionLog Summary SummaryMetadata train.summary_iterator"),
    "graphcore.tf1.train.saving.initializing": "train.init_from_checkpoint",
    "graphcore.tf1.train.saving.saver": "train.Saver train.export_meta_graph train.import_meta_graph",
}
"""The public names in each module, by their full names in TensorFlow; `there=here` where they differ."""

OPS: Final = (
    "acos acosh asin asinh atan atan2 atanh batch_to_space_nd bitcast broadcast_to ceil check_numerics cos cosh cross "
    "diag diag_part digamma div_no_nan dynamic_partition dynamic_stitch erf erfc expm1 fake_quant_with_min_max_args "
    "fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient fft fft2d fft3d "
    "floor floor_div greater greater_equal identity_n ifft ifft2d ifft3d invert_permutation is_finite is_inf "
    "is_nan less less_equal lgamma log1p logical_and logical_not logical_or matrix_band_part matrix_determinant matrix_inverse "
    "matrix_solve polygamma reciprocal rint roll rsqrt scatter_nd segment_max "
    "segment_mean segment_min segment_prod segment_sum shape_n sign sin sinh space_to_batch_nd squared_difference tan "
    "tensor_scatter_add tensor_scatter_sub tensor_scatter_update tile unique unique_with_counts unravel_index unsorted_segment_max "
    "unsorted_segment_min unsorted_segment_prod unsorted_segment_sum zeta betainc igamma igammac floordiv=floor_div reverse_v2 "
    "Print=print Assert=assert arg_max arg_min bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.invert "
    "bitwise.left_shift bitwise.right_shift "
    "math.erfinv math.ndtri math.xdivy math.xlog1py math.xlogy math.bessel_i0e math.bessel_i1e "
    "math.multiply_no_nan=mul_no_nan nn.avg_pool3d nn.max_pool3d nn.conv3d_backprop_filter_v2 nn.elu nn.l2_loss "
    "nn.relu6 nn.selu nn.softplus nn.softsign string_join string_strip string_to_hash_bucket_fast "
    "string_to_hash_bucket_strong as_string encode_base64 decode_base64 read_file write_file matching_files image.decode_png "
    "image.decode_jpeg image.encode_png image.encode_jpeg image.decode_gif image.decode_bmp image.decode_image "
    "linalg.det=matrix_determinant linalg.inv=matrix_inverse linalg.tensor_diag=diag linalg.tensor_diag_part=diag_part linalg.solve=matrix_solve "
    "linalg.sqrtm=matrix_square_root linalg.logm=matrix_logarithm matrix_square_root "
    "linalg.band_part=matrix_band_part linalg.triangular_solve=matrix_triangular_solve math.divide_no_nan=div_no_nan "
    "signal.fft signal.fft2d signal.fft3d signal.ifft signal.ifft2d signal.ifft3d tensor_scatter_nd_add=tensor_scatter_add "
    "tensor_scatter_nd_sub=tensor_scatter_sub tensor_scatter_nd_update=tensor_scatter_update "
    "regex_replace cholesky matrix_triangular_solve qr "
    "strings.as_string strings.format=string_format strings.join=string_join strings.lower=string_lower "
    "strings.upper=string_upper strings.strip=string_strip "
    "strings.regex_replace=regex_replace strings.regex_full_match=regex_full_match "
    "strings.to_hash_bucket_fast=string_to_hash_bucket_fast "
    "strings.to_hash_bucket_strong=string_to_hash_bucket_strong strings.unsorted_segment_join=unsorted_segment_join "
    "image.decode_and_crop_jpeg image.extract_jpeg_shape image.draw_bounding_boxes image.crop_and_resize "
)
"""Functions that are ops as they are; `there=here` where the function of `gc.ops` has another name."""

FALLBACKS: Final[dict[str, tuple[str, ...]]] = INTERNAL | {
    "bitwise": (),
    "debugging": ("",),
    "io": ("python_io", "image", "train", "strings", ""),
    "linalg": ("",),
    "manip": ("",),
    "math": ("nn", ""),
    "nn": ("",),
    "quantization": ("",),
    "random": ("nn",),
    "spectral": ("",),
}
"""Namespaces whose names, as far as TensorFlow has them, are found in these; "" is the top level."""


def places() -> dict[str, tuple[str, str]]:
    """Module and attribute of each name in `NAMES`."""
    homes: dict[str, tuple[str, str]] = {}
    for module, names in NAMES.items():
        for entry in names.split():
            there, _, here = entry.partition("=")
            homes[there] = module, here or there.rpartition(".")[2]
    return homes | {
        there: ("graphcore.api.ops", here or there.rpartition(".")[2]) for there, _, here in (e.partition("=") for e in OPS.split())
    }


PLACES: Final = places()

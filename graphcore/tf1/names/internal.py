"""The modules of TensorFlow's own sources that programs import, and namespaces with several names."""

from __future__ import annotations

from typing import Final

_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "python python.client python.framework python.ops python.platform python.util": ("",),
    "python.keras python.tools": (),
    "contrib.framework.python contrib.layers.python contrib.rnn.python contrib.rnn.python.ops": (),
    "contrib.training.python contrib.training.python.training": (),
    "contrib.seq2seq.python contrib.seq2seq.python.ops": (),
    "contrib.data": ("data",),
    "contrib.distributions": ("distributions",),
    "contrib.slim": ("contrib.layers", "contrib.framework"),
    "python.saved_model": ("saved_model",),
    "python.training": ("train", ""),
}
_PARTS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "python.framework": {"constant_op dtypes function ops random_seed sparse_tensor tensor_shape tensor_util": ("",)},
    "python.ops": {
        "array_ops check_ops clip_ops control_flow_ops data_flow_ops functional_ops gradients gradients_impl io_ops logging_ops "
        "lookup_ops math_ops parsing_ops resources script_ops sparse_ops state_ops string_ops tensor_array_ops variable_scope "
        "variables": ("",),
        "gen_array_ops gen_control_flow_ops gen_math_ops gen_nn_ops gen_state_ops gen_string_ops": ("", "nn"),
        "nn nn_impl nn_ops embedding_ops candidate_sampling_ops": ("nn", ""),
        "rnn rnn_cell rnn_cell_impl": ("nn.rnn_cell", "nn", "contrib.rnn"),
        "image_ops": ("image", ""),
        "init_ops": ("initializers", ""),
        "linalg_ops": ("linalg", ""),
        "losses": ("losses",),
        "metrics": ("metrics",),
        "random_ops": ("random", ""),
    },
    "python.platform": {"test": ("test",)},
    "python.training": {
        "adam gradient_descent learning_rate_decay momentum moving_averages optimizer rmsprop saver training training_util": ("train", "")
    },
}
_OF_SAVED_MODELS: Final = "builder constants loader main_op signature_constants signature_def_utils tag_constants utils"

INTERNAL: Final = {name: spaces for names, spaces in _MODULES.items() for name in names.split()} | {
    f"{start}.{name}": spaces for start, parts in _PARTS.items() for names, spaces in parts.items() for name in names.split()
}
"""Modules of TensorFlow's own sources, each with the namespaces that have its public names here; "" is the top level."""

_OF_CONTRIB: Final = {
    "contrib.framework.python.ops": "contrib.framework",
    "contrib.framework.python.ops.arg_scope": "contrib.arg_scopes",
    "contrib.framework.python.ops.variables": "contrib.framework",
    "contrib.layers.initializers": "contrib.regularizers",
    "contrib.crf": "contrib.crf",
    "contrib.layers.layers": "contrib.layers",
    "python.layers.utils": "contrib.layers.utils",
    "contrib.layers.regularizers": "contrib.regularizers",
    "contrib.layers.python.layers": "contrib.layers",
    "contrib.layers.python.layers.initializers": "contrib.regularizers",
    "contrib.layers.python.layers.layers": "contrib.layers",
    "contrib.layers.python.layers.regularizers": "contrib.regularizers",
    "contrib.layers.python.layers.utils": "contrib.layers.utils",
    "contrib.rnn.python.ops.core_rnn_cell": "nn.rnn",
    "contrib.rnn.python.ops.rnn_cell": "nn.rnn",
    **dict.fromkeys(
        [
            f"contrib.seq2seq.python.ops.{name}"
            for name in ("attention_wrapper", "basic_decoder", "beam_search_decoder", "decoder", "helper", "loss")
        ],
        "contrib.seq2seq",
    ),
    "contrib.slim.initializers": "contrib.regularizers",
    "contrib.slim.layers": "contrib.layers",
    "contrib.slim.losses": "contrib.losses",
    "contrib.slim.metrics": "contrib.metrics",
    "contrib.slim.regularizers": "contrib.regularizers",
    "contrib.slim.utils": "contrib.layers.utils",
    "contrib.training.python.training.hparam": "contrib.hparams",
    "python.layers": "layers",
    "python.layers.base": "layers",
    "python.layers.convolutional": "layers",
    "python.layers.core": "layers",
    "python.layers.layers": "layers",
    "python.layers.normalization": "layers",
    "python.layers.pooling": "layers",
}
ALIASES: Final = (
    {
        "python.client.device_lib": "graphcore.tf1.client.device_lib",
        "python.client.session": "graphcore.runtime",
        "python.client.timeline": "graphcore.tf1.client.timeline",
        "python.framework.errors": "graphcore.errors",
        "python.framework.graph_util": "graphcore.tf1.graph_util",
        "python.platform.app": "graphcore.tf1.app",
        "python.platform.flags": "graphcore.tf1.flags",
        "python.platform.gfile": "graphcore.tf1.gfile",
        "python.platform.tf_logging": "graphcore.tf1.logging",
        "python.util.compat": "graphcore.tf1.compat",
        "python.util.nest": "graphcore.tf1.nest",
        "saved_model": "graphcore.tf1.saved_model",
    }
    | {there: f"graphcore.tf1.{here}" for there, here in _OF_CONTRIB.items()}
    | {f"saved_model.{name}": "graphcore.tf1.saved_model" for name in _OF_SAVED_MODELS.split()}
)
"""The modules of namespaces that TensorFlow has under several names."""

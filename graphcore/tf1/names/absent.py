"""Names of TensorFlow 1 that are not here, with their purpose there and a substitute."""

from __future__ import annotations

from typing import Final

from graphcore.api.ops import snake_case
from graphcore.registry import op_registry

_PARTITIONER: Final = (
    "a rule that divides a variable into several, each with its own name, initial value and gradient; variables are whole here, so leave the "
    "partitioner out"
)

ABSENT: Final[dict[str, str]] = {
    "contrib": "a package of parts outside of the core of TensorFlow; build what they did from the ops of gc and gc.nn",
    "contrib.cudnn_rnn": "cells that only a GPU of NVIDIA computes; gc.nn.rnn_cell has cells, and gc.nn.dynamic_rnn runs them",
    "contrib.data": "an early form of tf.data; of its functions the methods of gc.data.Dataset do the work",
    "contrib.eager": "eager execution; here a graph is built first, and a gc.Session runs it",
    "contrib.estimator": "ready-made models; build the graph, and run its training step in a loop with a gc.Session",
    "contrib.keras": "a copy of Keras; gc.layers has the layers, and gc.nn their ops, such as gc.nn.conv2d",
    "contrib.learn": "ready-made models in the manner of scikit-learn; build the graph, and run its training step in a loop with a gc.Session",
    "contrib.opt": "further optimizers; those of gc.train are here",
    "contrib.factorization": "clusters of points and factors of matrices; of these gc.contrib.factorization.KMeans is here",
    "contrib.image": "geometric changes of images; gc.image has the common ones",
    "contrib.rnn.AttentionCellWrapper": "a cell that attends to its past outputs; gc.contrib.seq2seq.AttentionWrapper attends to an encoder",
    "contrib.rnn.GRUBlockCell": "a GRU cell in one op; gc.nn.rnn_cell.GRUCell computes the same",
    "contrib.rnn.LSTMBlockCell": "an LSTM cell in one op; gc.nn.rnn_cell.LSTMCell computes the same",
    "contrib.rnn.LSTMBlockFusedCell": "an LSTM layer in one op; gc.nn.dynamic_rnn with gc.nn.rnn_cell.LSTMCell computes the same",
    "contrib.rnn.NASCell": "a cell found by a search; gc.nn.rnn_cell.LSTMCell is the common one",
    "contrib.staging": "buffers in front of GPUs; gc.data.Dataset.prefetch does their work",
    "contrib.seq2seq": "decoders and attention; of its helpers and mechanisms those that dir(gc.contrib.seq2seq) lists are here",
    "contrib.slim.data": "readers of data sets; gc.data.Dataset reads files and arrays",
    "contrib.slim.dataset": "descriptions of data sets; gc.data.TFRecordDataset with gc.parse_single_example reads their files",
    "contrib.slim.dataset_data_provider": "readers of data sets; gc.data.TFRecordDataset with gc.parse_single_example reads their files",
    "contrib.slim.evaluation": "loops of evaluation; restore with gc.train.Saver, and run the updates of gc.metrics in a loop",
    "contrib.slim.nets": "networks such as Inception and ResNet; their definitions run over gc.contrib.slim as over TensorFlow's",
    "contrib.slim.parallel_reader": "readers in threads; gc.data.Dataset.interleave reads several files",
    "contrib.slim.python": "slim's own sources; the public names are in gc.contrib.slim",
    "contrib.slim.tfexample_decoder": "decoders of examples; gc.parse_single_example and gc.image.decode_jpeg do their work",
    "contrib.tpu": "training on TPUs; devices are simulated here with gc.Session(devices=[...])",
    "distribute": "distribution strategies, which copy a model to several devices; gc.train.replicate does so",
    "distributions": "probability distributions, of which Bernoulli, Categorical and Normal are here; gc.random_normal, gc.random_uniform and arithmetic on their values do the work of the others",
    "contrib.distributions": "probability distributions; gc.distributions has Bernoulli, Categorical and Normal",
    "GradientTape": "the gradients of eager execution; gc.gradients(ys, xs) adds them to the graph",
    "enable_eager_execution": "the switch to eager execution; here a graph is built first, and a gc.Session runs it",
    "enable_v2_behavior": "the switch to TensorFlow 2; here a graph is built first, and a gc.Session runs it",
    "estimator": "ready-made models with their training loops; build the graph, and run its training step in a loop with a gc.Session",
    "examples": "the examples of TensorFlow's own repository",
    "examples.tutorials.mnist": "a download of the digits of MNIST; read them with NumPy, or take sklearn.datasets.load_digits()",
    "feature_column": "columns of tables for tf.estimator; gc.one_hot and gc.nn.embedding_lookup do their work on tensors",
    "keras": "Keras, layers and models as objects; gc.layers has the layers, and gc.nn their ops, such as gc.nn.conv2d",
    "lite": "a converter for mobile devices; gc.save writes the graph",
    "load_op_library": "the load of ops in C++; gc.register_op adds an op",
    "mixed_precision": "a rewriting of graphs for half precision on GPUs; gc.cast converts single tensors",
    "models": "early models of TensorFlow's own repository; gc.nn.dynamic_rnn runs a recurrent cell",
    "profiler": "measurements of runs; run with gc.RunOptions(trace_level=...) or look at the timeline of a view",
    "py_function": "a call of Python within a run; what a program computes in NumPy it can feed",
    "python": "TensorFlow's own sources; the public names are in gc itself",
    "ragged": "tensors with rows of different lengths; pad the rows, and pass their lengths to gc.sequence_mask",
    "create_partitioned_variables": "variables divided among servers; gc.get_variable makes a whole one",
    "fixed_size_partitioner": _PARTITIONER,
    "min_max_variable_partitioner": _PARTITIONER,
    "variable_axis_size_partitioner": _PARTITIONER,
    "variable_creator_scope": "a hook around the making of variables; the custom_getter of gc.variable_scope is one for gc.get_variable",
    "image.sample_distorted_bounding_box": "a random part of an image around boxes; gc.random_crop takes a random part of a given size",
    "parse_sequence_example": "a decoder of sequence examples; store lists of numbers in gc.train.Example, and read them with gc.VarLenFeature",
    "parse_single_sequence_example": "a decoder of sequence examples; store lists of numbers in gc.train.Example, and read them with gc.VarLenFeature",
    "tpu": "training on TPUs; devices are simulated here with gc.Session(devices=[...])",
    "train.ClusterSpec": "the machines of a cluster; gc.DaskCluster names the workers of each job",
    "train.Server": "a server of a cluster; Dask's workers take its place: gc.LocalCluster starts them here, gc.DaskCluster uses those of other machines",
    "train.SyncReplicasOptimizer": "training on several machines; gc.train.replicate trains with any optimizer of gc.train",
    "audio_summary": "the earlier name of gc.summary.audio",
    "histogram_summary": "the earlier name of gc.summary.histogram",
    "image_summary": "the earlier name of gc.summary.image",
    "merge_all_summaries": "the earlier name of gc.summary.merge_all",
    "merge_summary": "the earlier name of gc.summary.merge",
    "scalar_summary": "the earlier name of gc.summary.scalar",
    "train.SummaryWriter": "the earlier name of gc.summary.FileWriter",
    "train.SummaryWriterCache": "the earlier name of gc.summary.FileWriterCache",
    "xla": "a compiler; plans of a gc.Session are compiled to Python anyway",
}
"""Names and whole namespaces, each with what it was and what to use. The longest name that fits a name is taken."""


def what_to_use(name: str) -> str:
    """The purpose of a name in TensorFlow 1.15 and its substitute here; "" for no name of TensorFlow.

    Args:
        name: the full name without `tf.`, such as `contrib.slim` or `estimator.DNNClassifier`.
    """
    parts = name.split(".")
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    entry = next((prefix for prefix in prefixes if prefix in ABSENT), None)
    if entry is not None:
        return f"tf.{entry} of TensorFlow 1 was {ABSENT[entry]}"
    if name in _tensorflow_names():
        return _op_of_that_name(parts[-1]) or f"tf.{name} of TensorFlow 1 is not available here"
    return ""


def _op_of_that_name(name: str) -> str:
    op = next((op for op in op_registry.names() if snake_case(op) == name), "")
    return f"the op {op} is called as gc.ops.{name}(...)" if op else ""


def _tensorflow_names() -> frozenset[str]:
    from graphcore.tf1.names.tensorflow_names import NAMES  # noqa: PLC0415 - needed for errors only

    return frozenset(f"{space}.{name}" if space else name for space, names in NAMES.items() for name in names.split())

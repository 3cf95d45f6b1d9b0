"""`tf.contrib.rnn` and `tf.nn.rnn_cell`: recurrent cells, and loops over sequences."""

from graphcore.tf1.nn.rnn.base import LayerRNNCell, LSTMStateTuple, RNNCell
from graphcore.tf1.nn.rnn.cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell
from graphcore.tf1.nn.rnn.dynamic import stack_bidirectional_dynamic_rnn
from graphcore.tf1.nn.rnn.normalized import LayerNormBasicLSTMCell
from graphcore.tf1.nn.rnn.phased import PhasedLSTMCell
from graphcore.tf1.nn.rnn.unrolled import static_bidirectional_rnn, static_rnn
from graphcore.tf1.nn.rnn.wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    InputProjectionWrapper,
    MultiRNNCell,
    OutputProjectionWrapper,
    ResidualWrapper,
)

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "GRUCell",
    "InputProjectionWrapper",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "LayerRNNCell",
    "MultiRNNCell",
    "OutputProjectionWrapper",
    "PhasedLSTMCell",
    "RNNCell",
    "ResidualWrapper",
    "stack_bidirectional_dynamic_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
]

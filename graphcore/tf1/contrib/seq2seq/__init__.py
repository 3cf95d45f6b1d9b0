"""`tf.contrib.seq2seq`: decoders, attention, and the loss of sequences."""

from graphcore.tf1.contrib.seq2seq.attention import AttentionMechanism, BahdanauAttention, LuongAttention, hardmax
from graphcore.tf1.contrib.seq2seq.beam import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
    gather_tree,
    tile_batch,
)
from graphcore.tf1.contrib.seq2seq.decoding import BasicDecoder, BasicDecoderOutput, Decoder, dynamic_decode
from graphcore.tf1.contrib.seq2seq.helpers import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from graphcore.tf1.contrib.seq2seq.losses import sequence_loss
from graphcore.tf1.contrib.seq2seq.wrapper import AttentionWrapper, AttentionWrapperState

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BasicDecoder",
    "BasicDecoderOutput",
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "CustomHelper",
    "Decoder",
    "FinalBeamSearchDecoderOutput",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "LuongAttention",
    "SampleEmbeddingHelper",
    "TrainingHelper",
    "dynamic_decode",
    "gather_tree",
    "hardmax",
    "sequence_loss",
    "tile_batch",
]

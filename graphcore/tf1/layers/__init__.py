"""`tf.layers`: layers as classes and as functions."""

from graphcore.tf1.layers.base import InputSpec, Layer
from graphcore.tf1.layers.convolution import Conv1D, Conv2D, Conv3D, SeparableConv1D, SeparableConv2D
from graphcore.tf1.layers.core import Dense, Dropout, Flatten
from graphcore.tf1.layers.functions import (
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    batch_normalization,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    dense,
    dropout,
    flatten,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
    separable_conv1d,
    separable_conv2d,
)
from graphcore.tf1.layers.normalization import BatchNormalization
from graphcore.tf1.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)
from graphcore.tf1.layers.transposed import Conv2DTranspose, Conv3DTranspose

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "InputSpec",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "SeparableConv1D",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "dense",
    "dropout",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv1d",
    "separable_conv2d",
]

"""`tf.initializers`: initializers of values, and nodes that initialise variables."""

from graphcore.tf1 import initial_values as values
from graphcore.tf1.initial_values import he_normal, he_uniform, lecun_normal, lecun_uniform
from graphcore.tf1.variables.listing import global_variables_initializer as global_variables
from graphcore.tf1.variables.listing import local_variables_initializer as local_variables
from graphcore.tf1.variables.listing import tables_initializer
from graphcore.tf1.variables.listing import variables_initializer as variables

__all__ = [
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]

constant = values.Constant
glorot_normal = values.GlorotNormal
glorot_uniform = values.GlorotUniform
identity = values.Identity
ones = values.Ones
orthogonal = values.Orthogonal
random_normal = values.RandomNormal
random_uniform = values.RandomUniform
truncated_normal = values.TruncatedNormal
uniform_unit_scaling = values.UniformUnitScaling
variance_scaling = values.VarianceScaling
zeros = values.Zeros

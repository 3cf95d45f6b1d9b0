"""Typical beginners' mistakes: the message for each, with the cell and line responsible.

Each row: the cells, the message, and the two clashing sides with the places where their numbers entered.
"""

from __future__ import annotations

import pytest

from graphcore.errors import GraphError
from tests.support.cells import run_cells

MISTAKES: dict[str, tuple[list[str], list[str]]] = {
    "transposed matmul": (
        [
            "x = gc.placeholder(gc.float32, [None, 784])",
            "W = gc.Variable(gc.zeros([10, 784]), name='W')",
            "y = gc.matmul(x, W)",
        ],
        [
            "Dimensions must be equal, but are 784 and 10",
            "dimension 1 of `Placeholder:0` = 784 <- cell In [1], line 1",
            "dimension 0 of `W/read:0` = 10 <- cell In [2], line 1",
        ],
    ),
    "matmul of the labels": (
        [
            "x = gc.placeholder(gc.float32, [None, 784], name='x')\nt = gc.placeholder(gc.float32, [None, 10], name='t')",
            "W = gc.Variable(gc.zeros([784, 10]), name='W')",
            "y = gc.matmul(t, W)",
        ],
        [
            "Dimensions must be equal, but are 10 and 784",
            "dimension 1 of `t:0` = 10 <- cell In [1], line 2",
            "dimension 0 of `W/read:0` = 784 <- cell In [2], line 1",
        ],
    ),
    "hidden sizes differ": (
        [
            "x = gc.placeholder(gc.float32, [None, 784], name='x')",
            "W1 = gc.Variable(gc.zeros([784, 128]), name='W1')\nW2 = gc.Variable(gc.zeros([256, 10]), name='W2')",
            "h = gc.relu(x @ W1)\ny = h @ W2",
        ],
        [
            "Dimensions must be equal, but are 128 and 256",
            "dimension 1 of `Relu:0` = 128 <- cell In [2], line 1",
            "dimension 0 of `W2/read:0` = 256 <- cell In [2], line 2",
        ],
    ),
    "forgotten flatten": (
        [
            "x = gc.placeholder(gc.float32, [None, 28, 28], name='x')",
            "W = gc.Variable(gc.zeros([784, 10]), name='W')",
            "y = gc.ops.mat_mul(x, W)",
        ],
        [
            "Shape must be rank 2 but is rank 3",
            "the rank of `x:0` = 3 <- cell In [1], line 1",
            "what `MatMul` requires <- cell In [3], line 1",
        ],
    ),
    "missing batch dimension": (
        [
            "x = gc.placeholder(gc.float32, [784], name='x')",
            "W = gc.Variable(gc.zeros([784, 10]), name='W')",
            "y = gc.ops.mat_mul(x, W)",
        ],
        [
            "Shape must be rank 2 but is rank 1",
            "the rank of `x:0` = 1 <- cell In [1], line 1",
            "what `MatMul` requires <- cell In [3], line 1",
        ],
    ),
    "bias of the wrong layer": (
        [
            "x = gc.placeholder(gc.float32, [None, 784], name='x')",
            "W = gc.Variable(gc.zeros([784, 10]), name='W')\nb = gc.Variable(gc.zeros([784]), name='b')",
            "y = x @ W + b",
        ],
        [
            "Dimensions must be equal, but are 10 and 784",
            "dimension 1 of `matmul:0` = 10 <- cell In [2], line 1",
            "dimension 0 of `b/read:0` = 784 <- cell In [2], line 2",
        ],
    ),
    "bias as a column": (
        [
            "h = gc.placeholder(gc.float32, [None, 10], name='h')",
            "b = gc.Variable(gc.zeros([10, 1]), name='b')",
            "y = gc.bias_add(h, b)",
        ],
        [
            "Shape must be rank 1 but is rank 2",
            "the rank of `b/read:0` = 2 <- cell In [2], line 1",
            "what `BiasAdd` requires <- cell In [3], line 1",
        ],
    ),
    "wrong axis": (
        [
            "t = gc.placeholder(gc.float32, [None, 10], name='t')",
            "axis = 2",
            "loss = gc.reduce_sum(t, axis)",
        ],
        [
            "Invalid reduction dimension 2 for input with 2 dimensions.",
            "the rank of `t:0` = 2 <- cell In [1], line 1",
            "the value of `Const:0` = 2 <- cell In [3], line 1",
        ],
    ),
    "wrong negative axis": (
        [
            "t = gc.placeholder(gc.float32, [None], name='t')",
            "loss = gc.reduce_mean(t, -2)",
        ],
        [
            "Invalid reduction dimension -2 for input with 1 dimensions.",
            "the rank of `t:0` = 1 <- cell In [1], line 1",
            "the value of `Const:0` = -2 <- cell In [2], line 1",
        ],
    ),
    "argmax axis": (
        [
            "t = gc.placeholder(gc.float32, [None, 10], name='t')",
            "guess = gc.argmax(t, 2)",
        ],
        [
            "Dimension (2) must be in the range [-2, 2), where 2 is the number of dimensions in the input.",
            "the rank of `t:0` = 2 <- cell In [1], line 1",
            "the value of `Const:0` = 2 <- cell In [2], line 1",
        ],
    ),
    "reshape count": (
        [
            "x = gc.placeholder(gc.float32, [100, 28, 28], name='x')",
            "flat = gc.reshape(x, [100, 748])",
        ],
        [
            "Cannot reshape a tensor with 78400 elements to shape [100,748] (74800 elements)",
            "dimension 0 of `x:0` = 100 <- cell In [1], line 1",
            "dimension 1 of `x:0` = 28 <- cell In [1], line 1",
            "dimension 2 of `x:0` = 28 <- cell In [1], line 1",
            "the value of `Const:0` = [100, 748] <- cell In [2], line 1",
        ],
    ),
    "reshape with a rest": (
        [
            "x = gc.placeholder(gc.float32, [10, 28, 28], name='x')",
            "flat = gc.reshape(x, [-1, 768])",
        ],
        [
            "Dimension size must be evenly divisible by 768 but is 7840",
            "dimension 0 of `x:0` = 10 <- cell In [1], line 1",
            "dimension 1 of `x:0` = 28 <- cell In [1], line 1",
            "dimension 2 of `x:0` = 28 <- cell In [1], line 1",
            "element 1 of the value of `Const:0` = 768 <- cell In [2], line 1",
        ],
    ),
    "concat rank": (
        [
            "a = gc.placeholder(gc.float32, [None, 10], name='a')",
            "b = gc.placeholder(gc.float32, [10], name='b')",
            "c = gc.concat([a, b], 0)",
        ],
        [
            "Shape must be rank 2 but is rank 1",
            "the rank of `a:0` = 2 <- cell In [1], line 1",
            "the rank of `b:0` = 1 <- cell In [2], line 1",
        ],
    ),
    "concat along the wrong axis": (
        [
            "a = gc.placeholder(gc.float32, [32, 10], name='a')",
            "b = gc.placeholder(gc.float32, [32, 5], name='b')",
            "c = gc.concat([a, b], 0)",
        ],
        [
            "Dimension 0 in both shapes must be equal, but are 10 and 5. Shapes are [10] and [5].",
            "dimension 1 of `a:0` = 10 <- cell In [1], line 1",
            "dimension 1 of `b:0` = 5 <- cell In [2], line 1",
            "the value of `Const:0` = 0 <- cell In [3], line 1",
        ],
    ),
    "concat axis beyond the rank": (
        [
            "a = gc.placeholder(gc.float32, [32, 10], name='a')",
            "c = gc.concat([a, a], 2)",
        ],
        [
            "Shape must be at least rank 3 but is rank 2",
            "the rank of `a:0` = 2 <- cell In [1], line 1",
            "the value of `Const:0` = 2 <- cell In [2], line 1",
        ],
    ),
    "stack of different shapes": (
        [
            "a = gc.placeholder(gc.float32, [10], name='a')",
            "b = gc.placeholder(gc.float32, [11], name='b')",
            "c = gc.stack([a, b])",
        ],
        [
            "Dimension 0 in both shapes must be equal, but are 10 and 11. Shapes are [10] and [11]. / From merging shape 0 with other shapes.",
            "dimension 0 of `a:0` = 10 <- cell In [1], line 1",
            "dimension 0 of `b:0` = 11 <- cell In [2], line 1",
        ],
    ),
    "broadcasting surprise": (
        [
            "y = gc.placeholder(gc.float32, [32, 10], name='y')",
            "t = gc.placeholder(gc.float32, [32], name='t')",
            "d = y - t",
        ],
        [
            "Dimensions must be equal, but are 10 and 32",
            "dimension 1 of `y:0` = 10 <- cell In [1], line 1",
            "dimension 0 of `t:0` = 32 <- cell In [2], line 1",
        ],
    ),
    "labels as indices": (
        [
            "logits = gc.placeholder(gc.float32, [32, 10], name='logits')",
            "labels = gc.placeholder(gc.float32, [32], name='labels')",
            "loss = gc.softmax_cross_entropy_with_logits(logits=logits, labels=labels)",
        ],
        [
            "Dimensions must be equal, but are 10 and 32",
            "dimension 1 of `logits:0` = 10 <- cell In [1], line 1",
            "dimension 0 of `labels:0` = 32 <- cell In [2], line 1",
        ],
    ),
    "one hot of the wrong depth": (
        [
            "logits = gc.placeholder(gc.float32, [None, 10], name='logits')",
            "labels = gc.placeholder(gc.int32, [None], name='labels')\nt = gc.one_hot(labels, 9)",
            "loss = gc.softmax_cross_entropy_with_logits(logits=logits, labels=t)",
        ],
        [
            "Dimensions must be equal, but are 10 and 9",
            "dimension 1 of `logits:0` = 10 <- cell In [1], line 1",
            "dimension 1 of `one_hot:0` = 9 <- cell In [2], line 2",
        ],
    ),
    "convolution without channels": (
        [
            "x = gc.placeholder(gc.float32, [None, 28, 28], name='x')",
            "k = gc.Variable(gc.zeros([5, 5, 1, 32]), name='k')",
            "h = gc.ops.conv2d(x, k, strides=[1, 1, 1, 1], padding='SAME')",
        ],
        [
            "Shape must be rank 4 but is rank 3",
            "the rank of `x:0` = 3 <- cell In [1], line 1",
            "what `Conv2D` requires <- cell In [3], line 1",
        ],
    ),
    "convolution of other channels": (
        [
            "x = gc.placeholder(gc.float32, [None, 28, 28, 3], name='x')",
            "k = gc.Variable(gc.zeros([5, 5, 2, 32]), name='k')",
            "h = gc.ops.conv2d(x, k, strides=[1, 1, 1, 1], padding='SAME')",
        ],
        [
            "Depth of input (3) is not a multiple of input depth of filter (2)",
            "dimension 3 of `x:0` = 3 <- cell In [1], line 1",
            "dimension 2 of `k/read:0` = 2 <- cell In [2], line 1",
        ],
    ),
    "off-by-one convolution": (
        [
            "x = gc.placeholder(gc.float32, [None, 28, 28, 1], name='x')",
            "k = gc.Variable(gc.zeros([5, 5, 1, 8]), name='k')\nh = gc.ops.conv2d(x, k, strides=[1, 1, 1, 1], padding='VALID')",
            "flat = gc.reshape(h, [100, 25 * 25 * 8])\nx2 = gc.placeholder(gc.float32, [100, 28, 28, 1], name='x2')\nh2 = gc.ops.conv2d(x2, k, strides=[1, 1, 1, 1], padding='VALID')\nflat2 = gc.reshape(h2, [100, 25 * 25 * 8])",
        ],
        [
            "Dimension size must be evenly divisible by 4608 but is 500000",
            "dimension 1 of `Conv2D:0` = 24 <- cell In [1], line 1; cell In [2], line 1",
            "dimension 2 of `Conv2D:0` = 24 <- cell In [1], line 1; cell In [2], line 1",
            "dimension 3 of `Conv2D:0` = 8 <- cell In [2], line 1",
            "the value of `Const:0` = [100, 5000] <- cell In [3], line 1",
        ],
    ),
    "kernel larger than the picture": (
        [
            "x = gc.placeholder(gc.float32, [None, 4, 4, 1], name='x')",
            "k = gc.Variable(gc.zeros([5, 5, 1, 8]), name='k')",
            "h = gc.ops.conv2d(x, k, strides=[1, 1, 1, 1], padding='VALID')",
        ],
        [
            "Negative dimension size caused by subtracting 5 from 4",
            "dimension 1 of `x:0` = 4 <- cell In [1], line 1",
            "dimension 0 of `k/read:0` = 5 <- cell In [2], line 1",
        ],
    ),
    "one pooling too many": (
        [
            "x = gc.placeholder(gc.float32, [None, 2, 2, 8], name='x')",
            "def pool(t):\n    return gc.ops.max_pool(t, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='VALID')",
            "y = pool(pool(x))",
        ],
        [
            "Negative dimension size caused by subtracting 2 from 1",
            "dimension 1 of `MaxPool:0` = 1 <- cell In [1], line 1",
            "what `MaxPool_1` requires <- cell In [2], line 2 (called in cell In [3])",
        ],
    ),
    "transpose of too few axes": (
        [
            "x = gc.placeholder(gc.float32, [None, 28, 28], name='x')",
            "y = gc.transpose(x, [1, 0])",
        ],
        [
            "Dimension must be 3 but is 2",
            "the rank of `x:0` = 3 <- cell In [1], line 1",
            "dimension 0 of `Const:0` = 2 <- cell In [2], line 1",
        ],
    ),
    "squeeze of a full dimension": (
        [
            "x = gc.placeholder(gc.float32, [None, 28, 28, 3], name='x')",
            "y = gc.squeeze(x, [3])",
        ],
        [
            "Can not squeeze dim[3], expected a dimension of 1, got 3",
            "dimension 3 of `x:0` = 3 <- cell In [1], line 1",
            "what `Squeeze` requires <- cell In [2], line 1",
        ],
    ),
    "uneven split": (
        [
            "x = gc.placeholder(gc.float32, [None, 10], name='x')",
            "parts = gc.ops.split(1, x, num_split=3)",
        ],
        [
            "Dimension size must be evenly divisible by 3 but is 10 / Number of ways to split should evenly divide the split dimension",
            "the value of `Const:0` = 1 <- cell In [2], line 1",
            "dimension 1 of `x:0` = 10 <- cell In [1], line 1",
            "what `Split` requires <- cell In [2], line 1",
        ],
    ),
    "unequal sums": (
        [
            "a = gc.placeholder(gc.float32, [2, 3], name='a')",
            "b = gc.placeholder(gc.float32, [3, 2], name='b')",
            "c = gc.add_n([a, a, b])",
        ],
        [
            "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,3] and [3,2]. / From merging shape 1 with other shapes.",
            "dimension 0 of `a:0` = 2 <- cell In [1], line 1",
            "dimension 0 of `b:0` = 3 <- cell In [2], line 1",
        ],
    ),
    "assigned value of another shape": (
        [
            "W = gc.Variable(gc.zeros([784, 10]), name='W')",
            "update = W.assign(gc.zeros([10, 784]))",
        ],
        [
            "Dimension 0 in both shapes must be equal, but are 784 and 10. Shapes are [784,10] and [10,784].",
            "dimension 0 of `W:0` = 784 <- cell In [1], line 1",
            "dimension 0 of `zeros_1:0` = 10 <- cell In [2], line 1",
        ],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_error_of_a_mistake_has_the_lines_where_its_numbers_entered(name: str) -> None:
    cells, expected = MISTAKES[name]
    with pytest.raises(GraphError) as caught:
        run_cells(*cells)
    error = caught.value
    message = error.message.partition(" for '")[0].replace("\n\t", " / ")
    chains = [f"{chain.statement} <- {'; '.join([root.where for root in chain.roots])}" for chain in error.chains]
    assert [message, *chains] == expected
    assert f" for '{error.node}' (op: '{error.op}') with input shapes: " in error.message
    assert len(chains) >= 2
    assert all("cell In [" in chain for chain in chains)


def test_there_are_enough_mistakes_to_learn_from() -> None:
    assert len(MISTAKES) >= 20

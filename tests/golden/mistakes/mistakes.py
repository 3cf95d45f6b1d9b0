"""Mistakes that students make: cells of notebooks, the last of which fails."""

from __future__ import annotations

from typing import Final, NamedTuple


class Mistake(NamedTuple):
    """One mistake.

    Attributes:
        title: the mistake in words.
        cells: the code of the cells in the order of their runs; the first line `# again N` makes one a further run of cell N, and
            `# fails` says that it fails before the last one does.
        deleted: the numbers of the cells that are deleted once the last of them has run.
    """

    title: str
    cells: tuple[str, ...]
    deleted: tuple[int, ...] = ()


_MODEL: Final = """x = gc.placeholder(gc.float32, [None, 4], name="x")
W = gc.Variable(gc.zeros([4, 3]), name="W")
b = gc.Variable(gc.zeros([3]), name="b")
y = gc.matmul(x, W, name="product") + b
session = gc.Session()"""
_LOSS: Final = """t = gc.placeholder(gc.float32, [None, 3], name="t")
loss = gc.reduce_mean(gc.square(y - t), name="loss")"""
_READY: Final = "session.run(gc.initialize_all_variables())"
_ROWS: Final = "rows = np.ones([2, 4], np.float32)"
_EXPLODING: Final = """w = gc.Variable(1.0, name="w")
loss = gc.square(w * w, name="loss")
(g,) = gc.gradients(loss, [w])
train = w.assign_sub(10.0 * g)
with gc.control_dependencies([train]):
    checked = gc.check_numerics(w.read_value(), "w is no number")
session = gc.Session()"""
_SAVED: Final = """import os, tempfile
path = os.path.join(tempfile.mkdtemp(), "model")
v = gc.Variable(gc.zeros([3]), name="NAME")
s = gc.Session()
s.run(gc.initialize_all_variables())
path = gc.train.Saver().save(s, path)"""

MISTAKES: Final = (
    Mistake("wrong shape", (_MODEL, "hidden = gc.tanh(gc.matmul(y, gc.ones([5, 2])))")),
    Mistake("a bias of another length", (_MODEL, "c = gc.Variable(gc.zeros([12]), name='c')", "y + c")),
    Mistake("forgotten feed", (_MODEL, _READY, "session.run(y)")),
    Mistake("uninitialised variable", (_MODEL, _ROWS, "session.run(y, {x: rows})")),
    Mistake("wrong dtype", (_MODEL, "k = gc.constant([1, 2, 3], name='k')", "y * k")),
    Mistake("integer matmul with float", ("a = gc.constant([[1, 2]], name='a')\nw = gc.ones([2, 2], name='w')", "a @ w")),
    Mistake("tensor as a condition", (_MODEL, "if gc.reduce_sum(y) > 0:\n    print('positive')")),
    Mistake(
        "tensor of another graph", (_MODEL, "other = gc.Graph()\nwith other.as_default():\n    z = gc.constant(1.0, name='z')", "y + z")
    ),
    Mistake("session of another graph", (_MODEL, "fresh = gc.Graph()\nwith gc.Session(fresh) as s:\n    s.run(y, {x: np.ones([2, 4])})")),
    Mistake("run before build", (_MODEL, "session.run(train)")),
    Mistake("a typo in a function's name", (_MODEL, "gc.reduce_maen(y)")),
    Mistake("a typo in a tensor's name", (_MODEL, _READY, "session.run('prodct:0')")),
    Mistake("fetching a string that is no node", (_MODEL, _READY, "session.run('accuracy')")),
    Mistake("fetching a number", (_MODEL, "session.run([y, 3.0])")),
    Mistake("axis out of range", (_MODEL, "gc.reduce_sum(y, axis=2)")),
    Mistake(
        "gradient that is None",
        (
            _MODEL,
            _LOSS,
            "other = gc.Variable(gc.zeros([3]), name='other')",
            "(g,) = gc.gradients(loss, [other])\nother.assign_sub(0.1 * g)",
        ),
    ),
    Mistake(
        "gradient cut by argmax",
        (
            _MODEL,
            "best = gc.cast(gc.argmax(y, 1), gc.float32)\nerror = gc.reduce_mean(best)",
            "(g,) = gc.gradients(error, [W])\nW.assign_sub(0.1 * g)",
        ),
    ),
    Mistake(
        "a learning rate that gives NaN",
        (
            _EXPLODING,
            _READY,
            "for step in range(50):\n    session.run(checked)",
        ),
    ),
    Mistake(
        "cells run again in the wrong order",
        (
            "x = gc.placeholder(gc.float32, [None, 4], name='x')\nW = gc.Variable(gc.zeros([4, 3]), name='W')",
            "y = gc.matmul(x, W, name='product')",
            "# again 0\nx = gc.placeholder(gc.float32, [None, 4], name='x')\nW = gc.Variable(gc.zeros([5, 3]), name='W')",
            "gc.Session().run(y, {x: np.ones([2, 4])})",
        ),
    ),
    Mistake(
        "a cell that failed half-way",
        (
            "k = gc.constant(2.0, name='k')\nh = gc.square(k, name='h')",
            "# again 0 # fails\nk = gc.constant(2, name='k')\n1 / 0\nh = gc.square(k, name='h')",
            "gc.Session().run(h)",
        ),
    ),
    Mistake("cell deleted", (_MODEL, "h = gc.tanh(y, name='h')", "%graph forget", "session.run(h, {x: np.ones([2, 4])})"), deleted=(1,)),
    Mistake("name of a cell that has not run", (_MODEL, "total = logits + 1.0")),
    Mistake(
        "device that does not exist",
        (
            "with gc.device('/gpu:7'):\n    v = gc.constant(1.0, name='v')\n    u = gc.tanh(v, name='u')",
            "gc.Session(devices=['/cpu:0', '/cpu:1']).run(u)",
        ),
    ),
    Mistake("device that is misspelt", ("with gc.device('/gqu:0'):\n    v = gc.constant(1.0, name='v')",)),
    Mistake(
        "checkpoint of another model",
        (
            _SAVED.replace("NAME", "old"),
            "gc.reset_default_graph()\nw = gc.Variable(gc.zeros([3]), name='new')",
            "gc.train.Saver().restore(gc.Session(), path)",
        ),
    ),
    Mistake(
        "checkpoint of another shape",
        (
            _SAVED.replace("NAME", "v"),
            "gc.reset_default_graph()\nv = gc.Variable(gc.zeros([4]), name='v')",
            "gc.train.Saver().restore(gc.Session(), path)",
        ),
    ),
    Mistake("checkpoint that is not there", (_MODEL, "gc.train.Saver().restore(session, 'models/mine')")),
    Mistake("wrong feed shape", (_MODEL, _READY, "session.run(y, {x: np.ones([4, 2])})")),
    Mistake("feed with one row as a vector", (_MODEL, _READY, "session.run(y, {x: [1.0, 2.0, 3.0, 4.0]})")),
    Mistake("feed of text", (_MODEL, _READY, "session.run(y, {x: 'pixels.png'})")),
    Mistake("feed of a tensor", (_MODEL, _READY, "session.run(y, {x: gc.ones([2, 4])})")),
    Mistake("feed by a name that is not in the graph", (_MODEL, _READY, "session.run(y, {'X': np.ones([2, 4])})")),
    Mistake("len() of a tensor", (_MODEL, "len(y)")),
    Mistake("iterating over a tensor", (_MODEL, "for row in y:\n    print(row)")),
    Mistake("loop over the size of a placeholder", (_MODEL, "for i in range(gc.shape(x)[0]):\n    print(i)")),
    Mistake("function of NumPy on a tensor", (_MODEL, "np.exp(y)")),
    Mistake("float() of a tensor", (_MODEL, "float(gc.reduce_sum(y))")),
    Mistake("item assignment", (_MODEL, "y[0] = 1.0")),
    Mistake("an attribute of NumPy", (_MODEL, "y.mean()")),
    Mistake("eval without a session", ("c = gc.constant(2.0, name='c')", "c.eval()")),
    Mistake("labels and logits swapped", (_MODEL, _LOSS, "gc.nn.softmax_cross_entropy_with_logits(y, t)")),
    Mistake(
        "labels that are not one-hot",
        (
            _MODEL,
            "labels = gc.placeholder(gc.int32, [None], name='labels')",
            "cost = gc.nn.softmax_cross_entropy_with_logits(labels=labels, logits=y)",
            _READY,
            "session.run(cost, {x: np.ones([2, 4]), labels: [0, 2]})",
        ),
    ),
    Mistake(
        "missing reduce_mean",
        (
            _MODEL,
            _LOSS,
            "loss = gc.reduce_sum(gc.square(y - t), axis=1, name='loss_of_rows')",
            _READY,
            "now = session.run(loss, {x: np.ones([2, 4]), t: np.ones([2, 3])})\nprint(f'loss {now:.3f}')",
        ),
    ),
    Mistake("assign of a wrong shape", (_MODEL, "W.assign(gc.zeros([3, 4]))")),
    Mistake("initial value that depends on a placeholder", (_MODEL, "v = gc.Variable(y, name='v')")),
    Mistake("name of a variable used twice", ("w = gc.get_variable('w', [3])", "w2 = gc.get_variable('w', [3])")),
    Mistake("reuse of a variable that is not there", ("with gc.variable_scope('layer', reuse=True):\n    w = gc.get_variable('w', [3])",)),
    Mistake(
        "cell that feeds on its own result",
        ("h = gc.constant([1.0, 2.0], name='h0')", "h = gc.tanh(h, name='h')", "# again 1\nh = gc.tanh(h, name='h')"),
    ),
    Mistake("closed session", (_MODEL, _READY, "session.close()", "session.run(W)")),
    Mistake(
        "loop that changes a shape",
        (
            "start = gc.ones([1, 2], name='start')",
            "gc.while_loop(lambda v: gc.reduce_sum(v) < 9.0, lambda v: (gc.concat([v, v], 0),), [start])",
        ),
    ),
    Mistake("loop whose condition is no bool", ("gc.while_loop(lambda i: i, lambda i: (i + 1,), [gc.constant(0)])",)),
    Mistake("branches of different types", (_MODEL, "gc.cond(gc.reduce_sum(y) > 0.0, lambda: gc.constant(1.0), lambda: gc.constant(1))")),
    Mistake(
        "function called with a wrong type", ("@gc.function\ndef double(v):\n    return 2.0 * v", "double(gc.constant([1, 2], name='k'))")
    ),
    Mistake("wrong number of arguments", (_MODEL, "gc.matmul(x)")),
    Mistake("op that does not exist", (_MODEL, "gc.apply_op('Matmul', [x, W])")),
    Mistake("values of different lengths", ("gc.constant([[1.0, 2.0], [3.0]])",)),
    Mistake("reshape to another number of elements", ("r = gc.ones([2, 6], name='r')", "gc.reshape(r, [5, 2])")),
    Mistake("concat of different shapes", ("p = gc.ones([2, 3], name='p')\nq = gc.ones([4, 2], name='q')", "gc.concat([p, q], 1)")),
    Mistake("index beyond the end", (_MODEL, "y[:, 3]")),
    Mistake(
        "logarithm of zero",
        ("p = gc.placeholder(gc.float32, [2], name='p')\nq = gc.check_numerics(gc.log(p), 'log')", "gc.Session().run(q, {p: [0.0, 1.0]})"),
    ),
    Mistake(
        "operands of different shapes while running",
        (
            "p = gc.placeholder(gc.float32, [None, 4], name='p')\nm = gc.reduce_mean(p, axis=1, name='m')\nc = gc.subtract(p, m, name='c')",
            "gc.Session().run(c, {p: np.ones([3, 4])})",
        ),
    ),
    Mistake("text for numbers", ("names = gc.constant(['Ada', 'Grace'], name='names')", "gc.tanh(names)")),
    Mistake("whole numbers for a function of floats", ("counts = gc.constant([1, 2], name='counts')", "gc.exp(counts)")),
    Mistake(
        "index out of range while running",
        (
            "table = gc.ones([3, 2], name='table')\ni = gc.placeholder(gc.int32, [None], name='i')\nrows = gc.gather(table, i, name='rows')",
            "gc.Session().run(rows, {i: [0, 3]})",
        ),
    ),
    Mistake(
        "training of an integer variable",
        ("n = gc.Variable(3, name='n')\nloss = gc.square(n, name='loss')", "gc.train.GradientDescentOptimizer(0.1).minimize(loss)"),
    ),
    Mistake(
        "training without a variable",
        ("c = gc.constant(3.0, name='c')\nloss = gc.square(c, name='loss')", "gc.train.GradientDescentOptimizer(0.1).minimize(loss)"),
    ),
)

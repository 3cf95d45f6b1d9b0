"""TensorFlow's side of the tests of whole graphs: importing them and running them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from google.protobuf import json_format, text_format
from tensorflow.python.client import pywrap_tf_session as c_api
from tensorflow.python.framework import c_api_util, op_def_registry

Array = npt.NDArray[Any]

logging.getLogger("tensorflow").setLevel(logging.ERROR)


def read(data: bytes, form: str) -> Any:
    """A GraphDef message from its bytes (`pb`), protobuf text (`pbtxt`) or JSON (`json`)."""
    message = tf.compat.v1.GraphDef()
    if form == "pb":
        message.ParseFromString(data)
    elif form == "pbtxt":
        text_format.Parse(data.decode(), message)
    else:
        json_format.Parse(data.decode(), message)
    return message


def run_graph(data: bytes, form: str, feeds: Mapping[str, Array], fetches: Sequence[str]) -> list[Array]:
    """Import a graph and run it once."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(read(data, form), name="")
        with tf.compat.v1.Session(graph=graph) as session:
            return [np.asarray(value) for value in session.run(list(fetches), dict(feeds))]


def run_saved_model(directory: str, signature: str, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The results of a SavedModel's signature, in TF1's session and as a TF2 function.

    Both must agree except for rounding.
    """
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        model = tf.compat.v1.saved_model.load(session, ["serve"], directory)
        found = model.signature_def[signature]
        fed = {found.inputs[name].name: value for name, value in feeds.items()}
        given = session.run({name: info.name for name, info in found.outputs.items()}, fed)
    function = tf.saved_model.load(directory, tags=["serve"]).signatures[signature]
    again = function(**{name: tf.constant(value) for name, value in feeds.items()})
    for name, value in given.items():
        np.testing.assert_allclose(value, again[name].numpy(), rtol=1e-4, atol=1e-5)
    return {name: np.asarray(value) for name, value in given.items()}


def train_graph(data: bytes, form: str, feeds: Mapping[str, Array], steps: int) -> Array:
    """Import a graph, run its `init`, then `loss` and `train` together so many times. Returns the losses."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(read(data, form), name="")
        with tf.compat.v1.Session(graph=graph) as session:
            session.run("init")
            return np.asarray([session.run(["loss:0", "train"], dict(feeds))[0] for _ in range(steps)])


def judge_graph(data: bytes) -> str:
    """The reason for which TensorFlow refuses the graph; "" if it imports it.

    The C importer is called directly: `tf.import_graph_def` changes the graph first, and fails in Python on some valid ones.
    """
    graph = tf.Graph()
    with c_api_util.tf_buffer(data) as buffer, graph._c_graph.get() as c_graph:
        options = c_api_util.ScopedTFImportGraphDefOptions()
        try:
            results = c_api.TF_GraphImportGraphDefWithResults(c_graph, buffer, options.options)
        except tf.errors.OpError as error:
            return error.message or type(error).__name__
        except UnicodeDecodeError:
            return "an error text that quotes bytes which are no text"
        c_api_util.ScopedTFImportGraphDefResults(results)
    return ""


def known_ops(names: Sequence[str]) -> list[str]:
    """The names of ops that TensorFlow has."""
    return [name for name in names if op_def_registry.get(name) is not None]


def differentiate_graph(data: bytes, form: str, feeds: Mapping[str, Array], y: str, x: str, weights: Sequence[Array]) -> Array:
    """Import a graph and run a derivative of `y` by `x`, of the order of the number of weight arrays."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(read(data, form), name="")
        target, source = graph.get_tensor_by_name(y), graph.get_tensor_by_name(x)
        for each in weights:
            (target,) = tf.gradients(target, source, grad_ys=tf.constant(each))
        with tf.compat.v1.Session(graph=graph) as session:
            return np.asarray(session.run(target, dict(feeds)))

"""Files beside graphs: MetaGraphs, SavedModels, lists of checkpoints, vocabularies."""

from __future__ import annotations

import contextlib
import functools
import random
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.tf1.contrib.learn import VocabularyProcessor
from graphcore.tf1.train.saving import checkpoint_states
from tests.support.fuzzing.messages import damaged_json, damaged_text
from tests.support.fuzzing.target import Target, maybe_damaged, packed, unpacked

tf: Any = gc  # its namespaces are made when they are asked for


@functools.cache
def _sources() -> tuple[list[bytes], list[bytes], list[str], list[str]]:
    """MetaGraphs, SavedModels, lists of checkpoints, and vocabularies."""
    with tempfile.TemporaryDirectory() as name, gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 2], name="x")
        w = gc.Variable(np.zeros((2, 3), np.float32), name="w")
        y = gc.matmul(x, w)
        graph.add_to_collection("outputs", y)
        saver = tf.train.Saver()
        session = gc.Session(graph)
        session.run(w.initializer)
        metas, models = [], []
        for text in (False, True):
            saver.export_meta_graph(f"{name}/m", as_text=text)
            metas.append(Path(f"{name}/m").read_bytes())
            builder = tf.saved_model.builder.SavedModelBuilder(f"{name}/s{text}")
            signature = tf.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
            models.append(Path(builder.save(as_text=text)).read_bytes())
        checkpoint_states.update_checkpoint_state(name, f"{name}/m-3", [f"{name}/m-{i}" for i in range(3)], None, [1.0, 2.0, 3.0])
        states = [Path(f"{name}/checkpoint").read_text()]
        processor = VocabularyProcessor(3)
        processor.fit(["a b", "c d e"])
        processor.save(f"{name}/words")
        return metas, models, states, [Path(f"{name}/words").read_text()]


def _changed(data: bytes, rng: random.Random) -> bytes:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return maybe_damaged(data, rng, 0.95)
    return damaged_text(text, rng).encode(errors="surrogatepass") if text.isprintable() or rng.random() < 0.5 else maybe_damaged(data, rng)


def make(rng: random.Random) -> bytes:
    """A file of each kind, one of them damaged."""
    metas, models, states, words = _sources()
    which = rng.randrange(4)
    meta, model, state, vocabulary = rng.choice(metas), rng.choice(models), states[0].encode(), words[0].encode()
    if which == 0:
        meta = _changed(meta, rng)
    if which == 1:
        model = _changed(model, rng)
    if which == 2:
        state = damaged_text(state.decode(), rng).encode(errors="surrogatepass") if rng.random() < 0.5 else maybe_damaged(state, rng, 1)
    if which == 3:
        vocabulary = damaged_json(vocabulary.decode(), rng).encode() if rng.random() < 0.5 else maybe_damaged(vocabulary, rng, 1)
    return packed(bytes([which]), (meta, model, state, vocabulary)[which])


def check(given: bytes) -> None:
    """Read the file that was damaged, as programs do."""
    which, data = unpacked(given, 2)
    with tempfile.TemporaryDirectory() as name, gc.Graph().as_default() as graph:
        match which[:1]:
            case b"\0":
                Path(f"{name}/m").write_bytes(data)
                tf.train.import_meta_graph(f"{name}/m")
            case b"\1":
                Path(f"{name}/saved_model.pb").write_bytes(data)
                with contextlib.suppress(GraphError):
                    tf.saved_model.loader.load(gc.Session(graph), ["serve"], name)
                gc.load(name)
            case b"\2":
                Path(f"{name}/checkpoint").write_bytes(data)
                tf.train.latest_checkpoint(name)
                tf.train.list_variables(name)
            case _:
                Path(f"{name}/words").write_bytes(data)
                list(VocabularyProcessor.restore(f"{name}/words").transform(["a b"]))


MODELS: Final = Target(make, check)

"""Training graphs that TensorFlow wrote, loaded and trained here, give its losses step by step."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_from_bytes
from tests.oracle.conftest import Oracle

SIDE = "tests.oracle.sides.trained.building"
STEPS = 5
GRAPHS = {
    "layers": [
        "convolutions_with_batch_norm_and_adam",
        "transposed_convolutions_with_ftrl",
        "two_adams_of_a_gan",
        "noise_of_an_autoencoder",
        "a_schedule_with_averages_and_clipping",
        "one_of_each_optimizer",
        "three_dimensions_and_other_layers",
        "a_process_of_matrices",
    ],
    "sequences": [
        "a_loop_with_momentum",
        "attention_with_adagrad",
        "a_clipped_branch_with_rmsprop",
        "a_dynamic_rnn",
        "a_decoder_with_attention_and_tensor_arrays",
        "scans_and_maps",
        "a_speech_model_with_ctc",
    ],
    "inputs": [
        "an_embedding_with_adagrad",
        "embeddings_in_shards_with_adam",
        "a_wide_and_deep_model",
        "words_through_a_lookup_table",
        "a_classifier_of_png_files",
        "boxes_of_a_detector",
        "batches_from_queues",
        "gradients_gathered_in_accumulators",
    ],
}
NEWER = {
    *GRAPHS["sequences"],
    "one_of_each_optimizer",
    "an_embedding_with_adagrad",
    "a_wide_and_deep_model",
    "gradients_gathered_in_accumulators",
}
"""The graphs that are also made with resource variables and functions."""
CASES = [
    pytest.param(module, name, modern, id=f"{name}-{'resources' if modern else 'references'}")
    for module, names in GRAPHS.items()
    for name in names
    for modern in ([False, True] if name in NEWER else [False])
]


@pytest.mark.parametrize(("module", "name", "modern"), CASES)
def test_a_training_graph_of_tensorflow_has_its_losses(module: str, name: str, modern: bool, oracle: Oracle) -> None:
    """Both with reference variables and Switch and Merge, and with resource variables and functions."""
    data, found = oracle.call(f"tests.oracle.sides.trained.{module}:trained", name, STEPS, modern)
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def_from_bytes(data), graph, prefix="")
        with gc.Session(graph=graph) as session:
            session.run(found["init"])
            losses = []
            for _ in range(STEPS):
                for each in found["before"]:
                    session.run(each, found["feeds"])
                losses.append(session.run([found["loss"], found["train"]], found["feeds"])[0])
            values = session.run(found["also"], found["feeds"])
    np.testing.assert_allclose(losses, found["losses"], rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(values, found["values"], strict=True):
        if theirs.dtype == object:
            assert mine.tolist() == theirs.tolist()
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)

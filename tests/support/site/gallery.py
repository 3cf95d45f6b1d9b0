"""The gallery: the first picture of each stored model, and its live page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import graphcore as gc
from widgets import build_scene, save
from widgets.scene import SceneState

DATA: Final = Path(__file__).parents[2] / "data"


class Model(NamedTuple):
    """A stored model, its heading, and a sentence about its picture."""

    path: str
    title: str
    words: str


MODELS: Final = (
    Model(
        "frontends/resnet50.onnx.gz",
        "ResNet50, ONNX",
        "Four stages of 3, 4, 6 and 3 equal blocks; weights were taken out to keep the file small.",
    ),
    Model("frontends/vit.onnx.gz", "Vision Transformer, ONNX", "Equal encoder layers are one box with a count."),
    Model("frontends/gpt2.onnx.gz", "GPT-2, ONNX", "A language model with symbolic sizes of batch and sequence."),
    Model("frontends/net.pt2", "A small convolutional network, PyTorch", "An exported program with its weights."),
    Model("frontends/lstm.pt2", "An LSTM, PyTorch", "A recurrent layer in an exported program."),
    Model("frontends/branching.pt2", "A branch, PyTorch", "`torch.cond`: both bodies open in the picture."),
    Model("frontends/looping.pt2", "A loop, PyTorch", "`while_loop`: condition and body open in the picture."),
    Model("frontends/scripted.pt", "A scripted module, TorchScript", "The code of the archive is read as text, and never run."),
    Model("frontends/traced.pt", "A traced module, TorchScript", "Modules, with the values that tracing recorded."),
    Model("frontends/net_state.pt", "Saved weights, PyTorch", "A state dict is read without unpickling: names, types and shapes."),
    Model("frontends/state_legacy.pth", "Saved weights in the old format, PyTorch", "Files from before PyTorch 1.6 open, too."),
    Model("frontends/shared.keras", "Shared layers, Keras", "A layer that is called twice has a box for each call."),
    Model("frontends/shared.h5", "The same model as HDF5, Keras", "The older format of Keras."),
    Model("frontends/quantised.tflite", "A quantised network, TensorFlow Lite", "Scales and zero points are in the inspector."),
    Model("frontends/looping.tflite", "A loop, TensorFlow Lite", "Subgraphs of the file are bodies of the loop."),
    Model("frontends/softmax.mlir", "A softmax of JAX, StableHLO", "The text that JAX hands to the compiler."),
    Model("frontends/softmax.hlo.txt", "A softmax of JAX, HLO", "The compiler's own form, with its regions."),
    Model("frontends/loops.mlirbc", "Loops of JAX, MLIR bytecode", "The binary form, read in a process of its own."),
    Model("frontends/branching_openvino.xml", "A branch, OpenVINO", "The XML of an intermediate representation."),
    Model("mobilenetv2.pb", "MobileNetV2, TensorFlow", "Inverted residual blocks, recognised without any names."),
    Model("transformer.pb", "A transformer, TensorFlow 2", "A GraphDef with function calls."),
    Model("mlp_train_v1.pb", "A training graph, TensorFlow 1", "Forward pass, gradients, and the steps of the optimizer."),
    Model("while_v1.pb", "A while loop, TensorFlow 1", "Enter, Merge, Switch and NextIteration, as the old executor ran them."),
    Model("functions_v2.pb", "Functions, TensorFlow 2", "Calls open into the bodies of their functions."),
    Model("saved_models/keras", "A SavedModel of Keras, TensorFlow", "The picture is that of the signature that serves."),
)
MARK: Final = "<!-- gallery -->"


def page_name(model: Model) -> str:
    """The name of a model's files, without an ending."""
    return model.path.removeprefix("frontends/").replace("/", "_").replace(".", "_")


def write_gallery(page: Path, folder: Path) -> None:
    """Write pictures and live pages of all models to `folder`, and list them in the gallery's page."""
    folder.mkdir(parents=True)
    entries = [entry(model, folder) for model in MODELS]
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(MARK, "\n".join(entries)), encoding="utf-8")


def entry(model: Model, folder: Path) -> str:
    """The section of a model."""
    path = DATA / model.path
    graph = gc.load(path, allow_unknown_ops=True, allow_internal_ops=True)
    scene = build_scene(graph, SceneState(), title=model.title)
    name = page_name(model)
    save(graph, folder / f"{name}.html", title=model.title)
    save(graph, folder / f"{name}.svg", title=model.title)
    count = sum(node.count for node in scene.nodes)
    size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    alt = escape(f"The first picture of {model.title}: {len(scene.nodes)} boxes", quote=True)
    return "\n".join(
        [
            f"## {model.title}\n",
            f"{model.words} {count:,} nodes in {len(scene.nodes)} boxes; the file has {max(1, round(size / 1000)):,} KB.\n",
            f'<p><a class="picture" href="gallery/{name}.html"><img src="gallery/{name}.svg" alt="{alt}" loading="lazy"></a></p>',
            f'<p><a href="gallery/{name}.html">Open the live page</a></p>\n',
        ]
    )

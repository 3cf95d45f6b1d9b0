"""All that is fuzzed, by name."""

from __future__ import annotations

from typing import Final

from tests.support.fuzzing.target import Target
from tests.support.fuzzing.targets.archives import ARCHIVES
from tests.support.fuzzing.targets.checkpoints import CHECKPOINTS
from tests.support.fuzzing.targets.contents import CONTENTS
from tests.support.fuzzing.targets.evaluation import EVALUATION
from tests.support.fuzzing.targets.graph_files import GRAPH_FILES
from tests.support.fuzzing.targets.graphs import GRAPHS
from tests.support.fuzzing.targets.layer_files import LAYER_FILES
from tests.support.fuzzing.targets.model_files import MODEL_FILES
from tests.support.fuzzing.targets.models import MODELS
from tests.support.fuzzing.targets.onnx_files import ONNX_FILES
from tests.support.fuzzing.targets.records import RECORDS
from tests.support.fuzzing.targets.shapes import SHAPES
from tests.support.fuzzing.targets.states import STATES
from tests.support.fuzzing.targets.torch_files import TORCH_FILES
from tests.support.fuzzing.targets.views import VIEWS

TARGETS: Final[dict[str, Target]] = {
    "graphs": GRAPHS,
    "models": MODELS,
    "checkpoints": CHECKPOINTS,
    "records": RECORDS,
    "archives": ARCHIVES,
    "contents": CONTENTS,
    "shapes": SHAPES,
    "evaluation": EVALUATION,
    "views": VIEWS,
    "states": STATES,
    "torch": TORCH_FILES,
    "model files": MODEL_FILES,
    "graph files": GRAPH_FILES,
    "onnx": ONNX_FILES,
    "layers": LAYER_FILES,
}

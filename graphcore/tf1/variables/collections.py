"""The names of collections."""

from __future__ import annotations

from typing import Final

VARIABLES: Final = "variables"
TRAINABLE_VARIABLES: Final = "trainable_variables"


class GraphKeys:
    """The names of TensorFlow 1's collections."""

    VARIABLES: Final = VARIABLES
    GLOBAL_VARIABLES: Final = VARIABLES
    TRAINABLE_VARIABLES: Final = TRAINABLE_VARIABLES
    LOCAL_VARIABLES: Final = "local_variables"
    METRIC_VARIABLES: Final = "metric_variables"
    MODEL_VARIABLES: Final = "model_variables"
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    WEIGHTS: Final = "weights"
    BIASES: Final = "biases"
    ACTIVATIONS: Final = "activations"
    LOSSES: Final = "losses"
    REGULARIZATION_LOSSES: Final = "regularization_losses"
    UPDATE_OPS: Final = "update_ops"
    TRAIN_OP: Final = "train_op"
    GLOBAL_STEP: Final = "global_step"
    INIT_OP: Final = "init_op"
    LOCAL_INIT_OP: Final = "local_init_op"
    READY_OP: Final = "ready_op"
    SUMMARIES: Final = "summaries"
    SUMMARY_OP: Final = "summary_op"
    QUEUE_RUNNERS: Final = "queue_runners"
    TABLE_INITIALIZERS: Final = "table_initializer"
    ASSET_FILEPATHS: Final = "asset_filepaths"
    SAVERS: Final = "savers"
    SAVEABLE_OBJECTS: Final = "saveable_objects"
    COND_CONTEXT: Final = "cond_context"
    WHILE_CONTEXT: Final = "while_context"
    EVAL_STEP: Final = "eval_step"

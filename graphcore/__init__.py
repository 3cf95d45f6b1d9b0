"""Graphloupe's core: dataflow graphs that are built, inferred, differentiated and run. `import graphcore as gc`.

    x = gc.placeholder(gc.float32, [None, 64], name="x")
    W = gc.Variable(gc.zeros([64, 10]), name="W")
    y = gc.softmax(x @ W)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        session.run(y, {x: pixels})

Build    gc.placeholder, gc.constant, gc.Variable, gc.name_scope, gc.device, gc.control_dependencies; TensorFlow 1's names are there under theirs
         (gc.nn, gc.train, gc.losses, ...), and every op is a function of gc.ops
Ask      gc.explain_shape(y), gc.explain_gradient(loss, W), gc.explain_placement(node), gc.check_gradient(loss, [W], feeds),
         gc.costs(y)
Derive   gc.gradients(loss, [W]), gc.function, gc.cond, gc.while_loop
Run      gc.Session().run(fetches, feed_dict); gc.RunOptions(trace=True) and gc.RunOptions(values=True) record a run
Compare  gc.graph_diff(before, after); gc.compare_runs(model, "model.onnx", x) names the first tensor that differs; gc.testing has checks for exercises
Files    gc.load(path), gc.save(graph, path), gc.train.Saver

In a notebook, `%load_ext kernelext` ties nodes to their cells, and `%graph` shows the graph beside them: `%graph?` lists its options. The notebooks
of the project begin with notebooks/00_quickstart.ipynb. `gc.NAME?` documents a name, and `gc.ops.NAME?` an op.
"""

from typing import TYPE_CHECKING

import graphcore.opset  # the op blocks register themselves
from graphcore import errors
from graphcore.api import *
from graphcore.attrs import Func, Placeholder, TensorValue
from graphcore.definitions import *
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from graphcore.errors import GraphError
from graphcore.functions import *
from graphcore.graph import (
    Edge,
    ExtendedInferenceContext,
    Graph,
    ImportOptions,
    ImportResults,
    Node,
    NodeBuilder,
    NodeDefBuilder,
    ShapeRefiner,
    Tensor,
    TensorId,
    add_default_attrs_to_graph_def,
    build_control_flow_info,
    copy_graph,
    debug_string,
    dfs,
    dfs_from,
    find_cycle,
    get_default_graph,
    get_op_list_for_validation,
    get_output_type,
    ops_used_by_graph,
    parse_tensor_name,
    post_order,
    remove_new_default_attrs,
    reset_default_graph,
    reverse_dfs,
    reverse_dfs_from,
    reverse_post_order,
    stripped_op_list,
    to_graph_def,
    topological_order,
    validate_graph_def,
    validate_graph_def_against_op_list,
    validate_graph_def_against_op_registry,
    validate_graph_has_no_cycle,
    verify_no_duplicate_node_names,
)
from graphcore.inference import InferenceContext
from graphcore.passes import *
from graphcore.placement import *
from graphcore.registry import (
    OpRegistry,
    get_op_gradient_creator,
    op_registry,
    register_op,
    register_op_gradient,
    register_op_no_gradient,
)
from graphcore.release import __version__, package_version
from graphcore.runtime import (
    CallableOptions,
    CancellationManager,
    DeviceAttributes,
    DirectSession,
    Event,
    Executor,
    ExecutorFactory,
    ExecutorParams,
    FunctionLibraryRuntime,
    GraphRunner,
    PeakMemory,
    PredictionError,
    ProcessFunctionLibraryRuntime,
    Recorder,
    Rendezvous,
    RendezvousArgs,
    RendezvousKey,
    RewrittenGraph,
    RunMetadata,
    Runner,
    RunOptions,
    RunRecord,
    Session,
    SessionOptions,
    SteppedRun,
    StepStats,
    Trace,
    ValueRecords,
    Watch,
    create_key,
    get_default_session,
    get_executor_factory,
    new_executor,
    parse_key,
    prediction_error,
    prune_for_targets,
    register_executor_factory,
    rewrite_graph_for_execution,
)
from graphcore.shapes import Shape
from graphcore.text import parse_function, parse_nodes, parse_op_signature
from graphcore.tf1.arrays.layout import (
    concat,
    expand_dims,
    identity,
    newaxis,
    one_hot,
    ones_like,
    reshape,
    shape,
    squeeze,
    stack,
    stop_gradient,
    transpose,
    zeros_like,
)
from graphcore.tf1.framework import (
    add_to_collection,
    constant,
    control_dependencies,
    convert_to_tensor,
    device,
    get_collection,
    group,
    name_scope,
    no_op,
    ones,
    placeholder,
    zeros,
)
from graphcore.tf1.math.elementwise import (
    abs,  # noqa: A004 - TF1's name
    add,
    add_n,
    cast,
    divide,
    equal,
    exp,
    log,
    matmul,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,  # noqa: A004 - TF1's name
    relu,
    sigmoid,
    sqrt,
    square,
    subtract,
    tanh,
    where,
)
from graphcore.tf1.math.reductions import (
    argmax,
    argmin,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from graphcore.tf1.random import random_normal, random_uniform, set_random_seed, truncated_normal
from graphcore.tf1.train.optimizers import AdamOptimizer, GradientDescentOptimizer, MomentumOptimizer, Optimizer
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.listing import (
    all_variables,
    initialize_all_variables,
    initialize_variables,
    is_variable_initialized,
    trainable_variables,
)
from graphcore.tf1.variables.saving import report_uninitialized_variables, restore_variables, save_variables
from graphcore.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from graphcore.runtime.cluster.cluster import DaskCluster, LocalCluster
    from graphcore.runtime.gpu.cuda import gpu_devices
    from graphcore.tf1 import app, flags, gfile, initializers, layers, logging, losses, nest, nn
    from graphcore.tf1.arrays.layout import *
    from graphcore.tf1.arrays.matrices import *
    from graphcore.tf1.arrays.ranges import *
    from graphcore.tf1.arrays.slices import *
    from graphcore.tf1.arrays.sorting import argsort, searchsorted, sort
    from graphcore.tf1.framework import *
    from graphcore.tf1.functional import *
    from graphcore.tf1.gating import tuple  # noqa: A004 - TF1's name
    from graphcore.tf1.initializers import (
        constant_initializer,
        glorot_normal_initializer,
        glorot_uniform_initializer,
        ones_initializer,
        orthogonal_initializer,
        random_normal_initializer,
        random_uniform_initializer,
        truncated_normal_initializer,
        uniform_unit_scaling_initializer,
        variance_scaling_initializer,
        zeros_initializer,
    )
    from graphcore.tf1.math.clipping import *
    from graphcore.tf1.math.einsum import einsum
    from graphcore.tf1.math.elementwise import *
    from graphcore.tf1.math.reductions import *
    from graphcore.tf1.math.segments import *
    from graphcore.tf1.sessions import ConfigProto, GPUOptions, GraphOptions, InteractiveSession
    from graphcore.tf1.tensor_array import TensorArray
    from graphcore.tf1.values import *
    from graphcore.tf1.variable_scopes import *
    from graphcore.tf1.variables.assigning import *
    from graphcore.tf1.variables.listing import *


if not TYPE_CHECKING:  # or type checkers would assume that every name exists
    from graphcore.tf1.names.lookup import attribute_of_package as __getattr__
    from graphcore.tf1.names.lookup import names_of_package as __dir__

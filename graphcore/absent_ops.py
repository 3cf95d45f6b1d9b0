"""Ops of TensorFlow that are not here, with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

ABSENT_OPS: Final[dict[str, str]] = {
    "CudnnRNN*": "it is computed by a library of NVIDIA in a layout of its own; a graph made with LSTMCell or GRUCell has the same model",
    "LSTMBlockCell* BlockLSTM* GRUBlockCell*": "fused recurrent kernels are not available; a graph with LSTMCell or GRUCell has the same model",
    "SampleDistortedBoundingBox*": "random crops of this kind are not available; feed the crop, or slice at random places",
    "SparseCross*": "crossed features are not available; join the strings, and hash them with StringToHashBucketFast",
    "Nccl* _Nccl*": "it sends between GPUs by a library of NVIDIA",
    "Collective*": "it sends between the machines of a cluster",
    "*TPU* *Tpu* Infeed* Outfeed* CrossReplicaSum AllToAll CollectivePermute *SparseCore* *DedupData* GetMinibatch*": "it is for TPUs",
    "Xla* _Xla*": "it belongs to a compiler, which makes it out of other ops",
    "_Mkl* __Mkl* _Fused* _UnaryOpsComposition _ScopedAllocator*": "TensorFlow makes it of other ops when it runs a graph; files have those",
    "BoostedTrees* Sdca* WALS*": "it belongs to a model of tf.estimator",
    "Quantized* Requantiz* QuantizeDownAndShrinkRange Dequantize QuantizeV2 UniformQuant* UniformDequant* UniformRequant*": (
        "arithmetic on quantised types is not available; the graph before quantisation, or with FakeQuant ops, runs"
    ),
    "Ragged*": "tensors with rows of different lengths came with TensorFlow 2; pad the rows, and pass their lengths",
    "Anonymous*": "it belongs to eager execution",
    "DTensor* Relayout* CopyToMesh*": "it belongs to tensors on several devices, of TensorFlow 2",
    "MatrixExponential": "TensorFlow has deprecated it, and has no kernel for it; gc.linalg.expm computes it of other ops",
    "Debug*": "the debugger of TensorFlow adds it to graphs; a graph without it gives the same",
    "Skipgram NegTrain": "TensorFlow has removed it too",
    "TensorArray TensorArrayV2 TensorArray*V2 TensorArrayPack TensorArrayUnpack TensorArrayRead TensorArrayWrite TensorArraySize "
    "TensorArrayClose TensorArrayConcat TensorArraySplit TensorArrayGather TensorArrayScatter TensorArrayGrad": (
        "the forms of tensor arrays before TensorFlow 1.0 are not available; save the graph again with a later version"
    ),
    "Batch[A-Z]*": "it was removed early in TensorFlow 1; the op without 'Batch' in its name takes several matrices too",
    "Save SaveSlices Restore RestoreSlice": "checkpoints of version 1 are not available; SaveV2 and RestoreV2 are",
    "Barrier* Stage* Unstage MapStage MapUnstage* MapPeek MapSize MapClear MapIncompleteSize OrderedMap* RecordInput": (
        "this buffer of input pipelines is not available; queues are"
    ),
    "*Dataset* *Iterator*": "this step of an input pipeline is not available; feed its batches to a placeholder",
    "*Summary*": "this form of summaries is not available; ScalarSummary and HistogramSummary are",
    "DecodeWebP DecodeJxl": "this format came with TensorFlow 2; DecodeImage reads PNG, JPEG, GIF and BMP",
    "Unicode*": "conversions of encodings are not available; strings are bytes, and StringLength and Substr count UTF-8 characters",
    "AudioSpectrogram Mfcc DecodeWav EncodeWav AudioMicrofrontend": "sound is not available; feed what comes after it",
    "Rpc* WorkerHeartbeat": "it calls other machines",
    "TensorMap*": "maps as tensors came with TensorFlow 2",
    "RemoteCall": "it calls functions on other machines",
}
"""Patterns of names, separated by spaces, each with the reason."""


def why_absent(name: str) -> str:
    """The reason for which an op of TensorFlow is not here; "" for other names."""
    for patterns, reason in ABSENT_OPS.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return reason
    return ""

"""Parts of the reader of ONNX models."""

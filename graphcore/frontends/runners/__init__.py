"""Runs of models by their own frameworks: ONNX, JAX, LiteRT, and PyTorch for exported programs"""

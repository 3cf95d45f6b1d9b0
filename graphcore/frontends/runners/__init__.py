"""Runs of models by their own frameworks: ONNX's reference, JAX, and PyTorch's exported programs"""

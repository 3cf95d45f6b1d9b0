"""CUDA devices by CuPy: transfers, kernels on a device, and programs that one device runs."""

"""kernelext."""

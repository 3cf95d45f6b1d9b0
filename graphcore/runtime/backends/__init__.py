"""The places where sessions run: this CPU, several devices, GPUs. `backend.py` chooses one."""

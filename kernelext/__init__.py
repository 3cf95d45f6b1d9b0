"""The kernel extension: `%load_ext kernelext` makes a notebook's cells own their nodes and shows the graph beside them."""

from kernelext.extension import load as load_ipython_extension
from kernelext.extension import unload as unload_ipython_extension
from kernelext.progress import Progress

__all__ = ["Progress", "load_ipython_extension", "unload_ipython_extension"]

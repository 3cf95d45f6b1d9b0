"""The IPython extension: `%load_ext kernelext` ties nodes to their cells and shows the graph."""

from kernelext.extension import load as load_ipython_extension
from kernelext.extension import unload as unload_ipython_extension
from kernelext.progress import Progress

__all__ = ["Progress", "load_ipython_extension", "unload_ipython_extension"]

"""All ops, one family a module. Importing the package registers their names.

`loading` imports a module when its first op is looked up.
"""

from graphcore.opset.framework.block import NO_GRADIENT, Example, no_registered_gradient, op
from graphcore.opset.loading import promise_modules

__all__ = ["NO_GRADIENT", "Example", "no_registered_gradient", "op", "promise_modules"]

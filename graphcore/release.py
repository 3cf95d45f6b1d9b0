"""The version of the package, and that of the names that it follows."""

VERSION = "0.1.0"
"""The version of the package: the build reads it here. `graphcore.package_version` is its public name."""
TENSORFLOW = "1.15.0"
"""The version of TensorFlow whose names the package has. Programs check it as `__version__` of what they import."""

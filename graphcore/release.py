"""The version of the package, and that of the names that it follows."""

package_version = "0.1.0"
"""The version of the package: the build reads it here."""
__version__ = "1.15.0"
"""The version of TensorFlow whose names the package has. Programs check it as that of what they import as TensorFlow."""

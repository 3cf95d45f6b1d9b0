"""Test support: scripts that prepare a machine, and helpers shared by several packages."""

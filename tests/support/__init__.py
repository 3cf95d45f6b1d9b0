"""What the tests share: programs that prepare a machine, and helpers that belong to no single package."""

"""Control flow: Switch and Merge, functional branches and loops, calls, sends, checks."""

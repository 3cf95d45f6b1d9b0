"""The plan engine: a pruned graph as one list of calls."""

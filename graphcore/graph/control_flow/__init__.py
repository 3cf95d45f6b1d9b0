"""Control-flow analysis of graphs: frames, loops, branches."""

"""The parts of a graph: nodes, edges, names, cells, order, change records."""

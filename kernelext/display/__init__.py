"""Display of graphs, tensors, arrays and definitions as results of cells."""

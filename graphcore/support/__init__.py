"""Services independent of graphs: memory limits, threads, deadlines, critical sections, files."""

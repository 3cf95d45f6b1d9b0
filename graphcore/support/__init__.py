"""Services that know nothing of graphs: memory limits, threads, deadlines, critical sections, files."""

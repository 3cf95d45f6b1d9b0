"""Edits of graphs: removal and rewiring of nodes, attrs and shapes; transactions."""

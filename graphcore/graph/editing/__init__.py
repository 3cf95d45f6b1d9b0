"""Changes what a graph has: removes and rewires nodes, sets attrs and shapes; transactions."""

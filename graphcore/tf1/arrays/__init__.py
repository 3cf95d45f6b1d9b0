"""Arrays: their layouts, slices, numbers in order and matrices, one family a file."""

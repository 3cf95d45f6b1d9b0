"""Shape functions, one family a file."""

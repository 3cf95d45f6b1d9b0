"""Functions: bodies, inlining, definitions from graphs."""

"""Infrastructure of passes: rewriting, declarations, constant evaluation, alias removal."""

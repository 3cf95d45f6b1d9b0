"""What passes share: rewriting, declarations, constant evaluation, alias removal."""

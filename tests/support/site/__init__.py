"""The site of the documentation: sources, generated pages, build and checks."""

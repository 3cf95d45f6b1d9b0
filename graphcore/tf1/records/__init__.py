"""Examples, and files of records that hold them."""

"""The rows of the table, one subject a file."""

"""The rows of the table, a subject a file."""

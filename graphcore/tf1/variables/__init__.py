"""Variables: creating, collecting and saving them."""

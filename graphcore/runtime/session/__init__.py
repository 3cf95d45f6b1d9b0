"""Sessions: the client API, planning with its cache, and running."""

"""Live views in a notebook and the messages between page and kernel."""

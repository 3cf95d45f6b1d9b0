"""Training of one model on several devices."""

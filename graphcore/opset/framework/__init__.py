"""What an op block is made of: its parts, type sets, gradient texts."""

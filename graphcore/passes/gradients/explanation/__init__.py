"""Analysis of the flow of gradients, for explanations."""

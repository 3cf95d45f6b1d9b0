"""The dataflow engine: nodes that start when their inputs are there."""

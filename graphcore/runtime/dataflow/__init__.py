"""The dataflow engine: nodes run when their inputs are available."""

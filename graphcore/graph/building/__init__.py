"""Adding nodes: from values and attrs, from NodeDefs, by chained calls; within scopes."""

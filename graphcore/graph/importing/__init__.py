"""Import of GraphDefs: names, inputs, options, checks."""

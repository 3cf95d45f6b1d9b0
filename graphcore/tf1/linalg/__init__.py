"""`tf.linalg`: decompositions, solutions and functions of matrices."""

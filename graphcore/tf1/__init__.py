"""TensorFlow 1's namespaces (`gc.nn`, `gc.train`, ...), each loaded when it is first asked for."""

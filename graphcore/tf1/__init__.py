"""TensorFlow 1's namespaces, a module or package each; `names/table.py` has the home of each name.

What `import graphcore` does not need is loaded when it is first asked for.
"""

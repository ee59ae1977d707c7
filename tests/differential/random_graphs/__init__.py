"""Random valid graphs of ops that we convert, run by TensorFlow and, converted, by LiteRT: the same results.

    python -m tests.differential.random_graphs --count 5000

`recipes`, `shape_recipes` and `network_recipes` draw an op with operands that suit it; `program` runs each at once in
TensorFlow, which refuses what is not valid, and builds the graph; `compare` takes it through; `shrink` makes a
difference small enough to say which op it is of; `known` lists LiteRT's own differences.
"""

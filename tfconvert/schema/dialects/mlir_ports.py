"""Attributes of functions, of arguments and of results that tell more of a module's interface than types do.

Those that begin with `tfconvert.` are in the texts that are written; those with `tf.` are for the exporter alone.
"""

STATE = "tfconvert.state"
"""The variable that an argument is before a call, or a result is after it."""

WEIGHT = "tfconvert.weight"
"""The name of the constant that an argument has to be."""

INITIAL = "tf.initial"
"""An argument's first or only value: the constant that is written beside the text."""

INITIALIZER = "tfconvert.initializer"
"""Marks the function that is called once, before all others."""

INITIALIZE = "initialize"
"""That function's name."""

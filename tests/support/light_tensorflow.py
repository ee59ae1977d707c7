"""Programs that take a part of TensorFlow, without the Python that its package loads by itself, which takes seconds."""

from __future__ import annotations

# The start of such a program: modules are found in the package without running the package itself.
LIGHT_TENSORFLOW = """
import importlib.util, sys
spec = importlib.util.find_spec("tensorflow")
sys.modules["tensorflow"] = importlib.util.module_from_spec(spec)
"""

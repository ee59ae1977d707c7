"""LiteRT's file format, its operators and their versions."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
"""The directory of the tables that modules beside this file read; a compiled module doesn't know its own path."""

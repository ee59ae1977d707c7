"""Hostile and unlucky inputs: none may crash, hang, leak or spoil anything.

The files go by what would happen: `test_leaks`, `test_bombs`, `test_crashes`, `test_output_files`, `test_results`.
"""

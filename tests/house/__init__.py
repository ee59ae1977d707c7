"""What must hold of the whole repository: floors, sizes, docstrings, pages, releases."""

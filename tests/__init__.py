"""The tests, in a package of their own name so that no other distribution's `tests` can stand in for it."""

"""Tests with heavy requirements, which `make test-all` installs and runs."""

"""The service over HTTP: routes, their guards, and their description."""

"""The service over HTTP: routes, what guards them, and how they are described."""

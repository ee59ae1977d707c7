"""The page of the service: files for browsers without a build step or third-party hosts."""

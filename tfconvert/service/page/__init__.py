"""The page of the service: files that browsers load as they are, with no build step and no foreign hosts."""

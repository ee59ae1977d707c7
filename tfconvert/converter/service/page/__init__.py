"""The page of the service: files that browsers load as they are, nothing built and nothing from elsewhere."""

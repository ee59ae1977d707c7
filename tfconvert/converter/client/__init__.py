"""The client of the service: its requests and steps are written once, for blocking and asynchronous programs."""

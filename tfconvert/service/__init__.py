"""The conversion service: jobs over HTTP in a database, each converted in a separate process."""

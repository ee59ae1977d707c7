"""The conversion service: jobs over HTTP, kept in a database, each converted in a process of its own."""

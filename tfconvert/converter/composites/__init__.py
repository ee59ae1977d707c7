"""Functions that declare what they implement, and their fusions."""

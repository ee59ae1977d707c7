"""Functions that say what they implement, and what a fusion of one is."""

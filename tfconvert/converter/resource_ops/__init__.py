"""Expands ops on variables that do more than read or assign into reads, plain ops and assignments."""

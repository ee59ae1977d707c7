"""Ops on variables that do more than read or assign, written as reads, plain ops and assignments."""

"""Which ops of StableHLO one kernel computes together, and moving them into a function of their own."""

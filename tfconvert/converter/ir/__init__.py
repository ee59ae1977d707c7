"""What every other folder needs of the IR: constants, edits, dimensions, symbols, the order of effects."""

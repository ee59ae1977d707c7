"""IR helpers that every other folder uses: constants, edits, dimensions, symbols, the order of effects."""

"""Forms of operators that LiteRT runs faster on a processor than the usual ones, by measured times."""

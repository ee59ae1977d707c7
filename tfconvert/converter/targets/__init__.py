"""The targets that a module is lowered to: LiteRT, StableHLO and IREE."""

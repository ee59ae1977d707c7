"""Foreign files to IR: SavedModels, GraphDefs, checkpoints. Importers don't depend on LiteRT."""

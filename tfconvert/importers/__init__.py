"""Foreign files to IR: SavedModels, GraphDefs, checkpoints. Importers know no LiteRT."""

"""What users read when a model can't be converted: a corpus of such models, each with the text of its error."""

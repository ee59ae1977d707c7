"""Error messages for models that can't be converted: a corpus of such models, each with the text of its error."""

"""Random graphs and programs: what TensorFlow computes against our executor and LiteRT, any number of them."""

"""What is done with finished .tflite files: compared with a model, layer by layer, and with each other; measured."""

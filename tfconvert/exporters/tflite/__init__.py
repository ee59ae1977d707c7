"""The .tflite writer: tables first, weights streamed after them."""

"""The .tflite writer: tables first, weights streamed behind them."""

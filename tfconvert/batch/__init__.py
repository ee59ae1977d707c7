"""Many conversions: tasks as data, processes that run them within limits, and engines that run lists of them."""

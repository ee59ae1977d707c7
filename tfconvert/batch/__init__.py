"""Many conversions: jobs as data, processes that run them within limits, and engines that run lists of them."""

"""IR to IR: the pipeline, its passes, and the jobs around them."""

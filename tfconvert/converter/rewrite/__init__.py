"""The DAG rewriter: patterns, the rewriter, the greedy driver."""

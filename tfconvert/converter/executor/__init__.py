"""The reference executor: runs IR on arrays, op by op."""

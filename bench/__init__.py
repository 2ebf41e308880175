"""The benchmark: what the switchboard itself costs, beside the same work without it."""

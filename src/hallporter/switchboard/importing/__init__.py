"""Moving in from another system: what it has becomes ours, and it is only read."""

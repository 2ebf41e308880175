"""Who runs what, and when; the truth is in the store."""

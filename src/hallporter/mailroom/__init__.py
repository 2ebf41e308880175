"""The files between host and sandbox: requests come in, results and snapshots go out."""

"""The protocol that the host and the program in the sandbox both speak."""

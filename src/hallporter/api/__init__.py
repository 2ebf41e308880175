"""The HTTP door: what the switchboard can do, for programs, the shell and the console."""

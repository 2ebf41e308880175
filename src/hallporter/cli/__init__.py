"""The `hallporter` command."""

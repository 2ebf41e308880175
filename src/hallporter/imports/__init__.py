"""What other systems have kept, read from where they left it and never written to."""

"""What is wrong with a home, and how to mend it."""

"""The program that hosts an agent inside its sandbox."""

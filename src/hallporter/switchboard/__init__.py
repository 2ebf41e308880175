"""The application: what happens to a message between the street and the rooms."""

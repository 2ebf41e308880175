"""An agent without a model: it shows a newcomer what the house does, and needs no key."""

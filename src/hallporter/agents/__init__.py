"""Who answers: agents in sandboxes now, agents behind HTTP beside them."""

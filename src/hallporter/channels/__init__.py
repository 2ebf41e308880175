"""Words come in and go out: one module per chat network."""

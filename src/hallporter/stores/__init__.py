"""What survives a restart: one database, one small repository per noun."""

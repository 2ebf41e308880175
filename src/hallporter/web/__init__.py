"""The pages: rendered here, sent as they are, without a build step."""

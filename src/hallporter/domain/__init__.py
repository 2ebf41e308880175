"""The language of the house: frozen values and pure decisions; imports nothing of ours."""

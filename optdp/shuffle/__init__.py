"""Protocols of the shuffle model: what every person sends, and what is made of it."""

"""Pictures of what was found: as data, as SVG without a script, and by matplotlib."""

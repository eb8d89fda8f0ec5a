"""The file that goes to production: written whole, read with suspicion, handed on in other formats."""

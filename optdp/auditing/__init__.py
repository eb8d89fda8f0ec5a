"""Statistical tests of a sampler that can only be called: what it gives away, and whether it follows its table."""

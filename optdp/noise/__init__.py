"""Paper A: noise matrices for locally trusted entities (LTEs) that know a prior of their people's inputs."""

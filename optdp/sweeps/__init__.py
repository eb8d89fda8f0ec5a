"""Sweeps: one problem at every point of a grid, each point solved and certified by itself."""

"""At home elsewhere: a noise matrix as a measurement of OpenDP, and as a privacy loss distribution of dp-accounting.

Both speak of ordinary differential privacy. So both carry the ordinary epsilon, never the one under a prior.
"""

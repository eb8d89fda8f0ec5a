"""What shuffling buys (papers B and C): bounds, calibration, composition."""

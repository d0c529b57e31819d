"""What bench/run is made of. Python's standard library alone."""

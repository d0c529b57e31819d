"""The parts of bench/run. Python's standard library alone."""

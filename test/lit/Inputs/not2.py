"""Runs a command; succeeds when that ends with exit code 2, wrong usage."""
import subprocess
import sys

sys.exit(subprocess.run(sys.argv[1:]).returncode != 2)

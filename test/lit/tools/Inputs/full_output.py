"""full_output.py COMMAND ...: the command, whose standard output is a full device, must end with
status 1 and say once that it cannot write."""
import subprocess
import sys

with open("/dev/full", "w") as full:
    run = subprocess.run(sys.argv[1:], stdout=full, stderr=subprocess.PIPE, text=True)
said = run.stderr.count("cannot write standard output: No space left on device")
if run.returncode != 1 or said != 1:
    sys.exit(f"status {run.returncode}, want 1; said {said} times, want once:\n{run.stderr}")

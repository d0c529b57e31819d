"""failing_memory.py LIBRARY COUNT COMMAND ...: the command is run with its allocation number 0, 1,
.. COUNT - 1 failing, by the preloaded library. It may succeed all the same; if not, it must say
why on standard error, and not crash. (Where LLVM runs out of memory it says so and aborts.)"""
import os
import subprocess
import sys

library, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
wrong = failed = 0
for at in range(count):
    env = dict(os.environ, LD_PRELOAD=library, FAIL_AT=str(at))
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    failed += run.returncode != 0
    silent = run.returncode != 0 and "memory" not in run.stderr and "error" not in run.stderr
    if silent:
        wrong += 1
        print(f"allocation {at}: status {run.returncode}, stderr: {run.stderr!r}")
if not failed:
    print("no allocation failed: is the library preloaded?")
sys.exit(wrong > 0 or not failed)

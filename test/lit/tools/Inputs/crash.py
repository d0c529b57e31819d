"""crash.py REPRODUCER: a signal ends tilus-opt in front of the pass cse.

There it prints a module that is longer than a pipe holds. Once the first byte arrives, it waits for us to
read on, and we send the signal.
"""
import os
import signal
import subprocess
import sys

reproducer = sys.argv[1]
source = reproducer + ".in"
with open(source, "w") as out:
    out.write("param N = 1\nprogram @long<1>(%p: ptr<f32>) {\n  %g = view_global %p : f32[32 * N]\n"
              "  %v0 = load_global %g[0] : f32[32] @ spatial(32)\n")
    for i in range(5000):
        out.write(f"  %v{i + 1} = neg %v{i}\n")
    out.write("  store_global %v5000, %g[0]\n}\n")
# A sanitizer must leave the signal to its default action.
environment = dict(os.environ, ASAN_OPTIONS="handle_segv=0")
tool = subprocess.Popen(["tilus-opt", source, "-D", "N=2", "--passes=dce,cse,dce", "--verify-each=false",
                         "--print-before=cse", "--reproducer=" + reproducer],
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
first = tool.stderr.read(1)
tool.send_signal(signal.SIGSEGV)
rest = (first + tool.stderr.read()).decode()
if tool.wait() != -signal.SIGSEGV:
    sys.exit(f"exit code {tool.returncode}\n{rest}")
print(rest[rest.index("note:"):])

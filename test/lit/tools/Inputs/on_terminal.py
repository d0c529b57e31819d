"""Runs slow.tilus for some seconds, first without a terminal, then with stderr on one, and
prints what came there: each line as it was drawn, with "CLEAR" for the sequence that takes it
away. Usage: on_terminal.py PROGRAM ENGINE QUICK|SLOW
"""
import os
import pty
import re
import subprocess
import sys
import time

program, engine, speed = sys.argv[1:]


def command(rounds):
    return ["tilus-run", program, f"--engine={engine}", "--arg", f"rounds={rounds}", "--arg",
            "x=zeros(f32, 256)"]


def find_rounds(seconds):
    """As many as take so long here; a terminal must not be there for them."""
    rounds, took = 16, 0
    while took < seconds:
        rounds = min(int(rounds * min(max(1.3 * seconds / max(took, 0.01), 2), 50)), 2**31 - 1)
        start = time.monotonic()
        run = subprocess.run(command(rounds), capture_output=True, check=True)
        took = time.monotonic() - start
        assert b"\r" not in run.stderr and b" blocks" not in run.stderr, run.stderr
    return rounds


def read_all(fd):
    text = b""
    try:
        while chunk := os.read(fd, 4096):
            text += chunk
    except OSError:     # a terminal ends so, when nobody else has it
        pass
    return text.decode()


rounds = 1 if speed == "QUICK" else find_rounds(2.7)
master, slave = pty.openpty()
with subprocess.Popen(command(rounds), stderr=slave, stdout=subprocess.DEVNULL) as child:
    os.close(slave)
    text = read_all(master)
print(re.sub(r"\r?\x1b\[K", "\nCLEAR ", text).replace("\r\n", "\n"))
raise SystemExit(child.returncode)

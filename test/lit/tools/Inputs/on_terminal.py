"""Runs slow.tilus with stderr on a terminal, and prints what came there: each line as it was
drawn, with "CLEAR" for the sequence that takes it away. QUICK is one short run. SLOW runs with
more and more rounds, until something was drawn or so much time went by that something should
have been: how fast this machine is, and what else it does, changes from run to run. The same
run without a terminal must draw nothing. Usage: on_terminal.py PROGRAM ENGINE QUICK|SLOW
"""
import os
import pty
import re
import subprocess
import sys
import time

LONG_ENOUGH_S = 8   # a line comes after 2 s
CLEAR = "\x1b[K"

program, engine, speed = sys.argv[1:]


def command(rounds):
    return ["tilus-run", program, f"--engine={engine}", "--arg", f"rounds={rounds}", "--arg",
            "x=zeros(f32, 256)"]


def read_all(fd):
    text = b""
    try:
        while chunk := os.read(fd, 4096):
            text += chunk
    except OSError:     # a terminal ends so, when nobody else has it
        pass
    return text.decode()


def run_on_terminal(rounds):
    """What came to the terminal, and the seconds that it took."""
    master, slave = pty.openpty()
    start = time.monotonic()
    with subprocess.Popen(command(rounds), stderr=slave, stdout=subprocess.DEVNULL) as child:
        os.close(slave)
        text = read_all(master)
    os.close(master)
    assert child.returncode == 0, text
    return text, time.monotonic() - start


def run_slowly():
    rounds, took = 16, 0
    while took < LONG_ENOUGH_S:
        text, took = run_on_terminal(rounds)
        if CLEAR in text:
            break
        rounds = min(int(rounds * min(max(3 / took, 1.5), 50)), 2**31 - 1)
    run = subprocess.run(command(rounds), capture_output=True, check=True)
    assert b"\r" not in run.stderr and b" blocks" not in run.stderr, run.stderr
    return text


text = run_on_terminal(1)[0] if speed == "QUICK" else run_slowly()
print(re.sub(r"\r?\x1b\[K", "\nCLEAR ", text).replace("\r\n", "\n"))

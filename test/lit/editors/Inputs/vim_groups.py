"""vim_groups.py DIRECTORY FILE.tilus: the syntax group that Vim gives to words of the language, to every op
and every type. FILE is written: each on a line of its own, so that it is found by the name's ending."""
import re
import subprocess
import sys

directory, path = sys.argv[1:]


def listed(option):
    table = subprocess.run(["tilus-opt", option], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\| `(\w+)`", table, re.MULTILINE)


words = ["program", "@f", "local", "%n", "0x1F", "// comment i6"] + listed("--list-ops") + listed("--list-types")
with open(path, "w") as out:
    out.writelines(word + "\n" for word in words)
script = """
for line in range(1, line('$'))
  let group = synIDattr(synID(line, 1, 1), 'name')
  call writefile([getline(line) . ': ' . (group == '' ? 'none' : group)], '/dev/stdout', 'a')
endfor
qall!
"""
with open(path + ".vim", "w") as out:
    out.write(script)
subprocess.run(["vim", "-N", "-u", "NONE", "-i", "NONE", "-es", "--cmd", "set rtp^=" + directory,
                "--cmd", "filetype on", "--cmd", "syntax on", path, "-S", path + ".vim"], check=True)

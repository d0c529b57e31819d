"""Writes a .npy file: npy.py FILE DESCR SHAPE DATA [fortran], DATA in hexadecimal digits."""
import struct
import sys

path, descr, shape, data = sys.argv[1:5]
header = f"{{'descr': '{descr}', 'fortran_order': {'fortran' in sys.argv[5:]}, 'shape': {shape}, }}"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(path, "wb") as out:
    out.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode())
    out.write(bytes.fromhex(data))

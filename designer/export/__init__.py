"""A design in the formats of other tools: one module a format, `formats.py` lists them.

All start from a `Plan`, which gives every device and every port its name; `differences.py` compares a plan with a
wiring list that was read back.
"""

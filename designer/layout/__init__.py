"""The floor: racks, rows, where every device stands, how long each cable is, and what it is then made of.

`floor.py` has positions and lengths, `placing.py` the switches' best places, `recabling.py` the cheapest cable of every
link, `shortest.py` what cables cost at least, `fitting.py` puts the networks of a search on the floor.
"""

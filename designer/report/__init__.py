"""A design file as one HTML page, and the words for a design that the page and the command line share.

`page.py` puts the sections together; each section is a file. Nothing here reads anything but the design file.
"""

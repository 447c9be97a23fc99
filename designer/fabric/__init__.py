"""The network as a graph: `Fabric`, columnar arrays of nodes and links, and how shapes and templates become one.

`shape.py` describes a Clos in a few numbers, `build.py` draws it, `templates.py` holds the known topologies.
"""

"""What the user writes: the instance file, its schema, and how it is read.

`load_instance` turns a YAML file into an `Instance`, resolved against the catalog, or names every problem it has.
"""

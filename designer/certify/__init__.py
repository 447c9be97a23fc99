"""The independent check of a design: structure, exact throughput, failures. It starts from the plain graph.

Nothing here imports `designer.formulation`: that is what makes the check a check.
"""

"""From a training job to traffic: transformer sizes, rank placement, collectives, phases and their cut functions.

`derive_traffic` turns an `Instance` into `Traffic`.
"""

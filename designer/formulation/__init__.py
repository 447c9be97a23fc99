"""The integer programs that propose networks. Nothing here judges a network: that is `designer.certify`.

`demand.py` turns traffic and requirements into capacities, `hardware.py` lists what the catalog offers for each tier,
`clos.py` is the program of the Clos family, solved best bound first by `clos_search.py`.
"""

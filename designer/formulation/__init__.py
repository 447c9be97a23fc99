"""The integer programs that propose networks. Nothing here judges a network: that is `designer.certify`.

`demand.py` turns traffic and requirements into capacities, `hardware.py` lists what the catalog offers for each tier,
`clos.py` is the program of the Clos family, solved best bound first by `clos_search.py`; `bounds.py` holds for networks
of any shape. `mixed_search.py` and the modules named like it are for servers of several kinds. `network_design.py`
places modules on the links of a given graph, with any of the solvers of `solvers.py`.
"""

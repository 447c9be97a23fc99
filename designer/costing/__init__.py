"""What a network costs: unit prices under an objective, the bill of materials of a fabric, power and energy.

The bill is counted from the fabric's links and ports alone; its total equals the objective to the cent.
"""

"""What the fleet does: servers report, replicas move towards their goals, the pool follows.

`passes.py` runs the whole, `machine.py` knows the states, `replicas.py` and `servers.py` are what
people may ask for.
"""

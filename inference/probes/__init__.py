"""Probes: the calls that examples depend on, made through the edge with a key, like a member's.

`calls` says which there are and how each is judged, `runs` makes them, `results` is what pages
read. A run has a key of its own for as long as it lasts: see `own_key`.
"""

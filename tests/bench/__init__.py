"""`make bench`: speed and size of the whole product, from one run on real parts.

Where two things are compared they are measured in the same run, alternating, so that a busy machine
slows both.
"""

"""Real clients against the local stack, set up as their pages say: `make test-clients`."""

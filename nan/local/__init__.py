"""The local stack: every part of the product on one machine, for development and tests."""

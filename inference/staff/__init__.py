"""The admins' pages of the fleet: servers, the catalogue of models, slots, swaps.

Each module is one noun: views with nothing in them but forms, calls of use cases and rendering.
What a page says is worked out beside it (`server_page`, `swap_page`).
"""

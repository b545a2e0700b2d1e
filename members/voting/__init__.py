"""Votes: from a member's proposal to a planned swap.

    proposals → shortlist → rounds (open) → ballots → closing → results → ratify
                  facts, known, compare: what is said of a model   recall: voting again

Postgres's clock decides about deadlines, in the statement that needs it; tasks only make things
happen soon. A ballot is linked to its voter until the close, and to nobody after it.
"""

"""Django's Postgres that does not wait for a database which is known to be away (base.py)."""

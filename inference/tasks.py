"""Celery tasks of this app: each takes an id, calls one function, writes the outcome."""

"""Guides and client examples: Markdown files in two languages, filled in at reading time."""

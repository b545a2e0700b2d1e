"""What members used: taken over from the gateway (pull.py), and shown to them and to nobody else
(pages.py; admins: staff.py)."""

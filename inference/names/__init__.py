"""What members may call as `model`: how names come and go (life.py), and how the gateway learns of
it (publish.py)."""

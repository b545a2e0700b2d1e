"""How dates are written, where Django's own way would mislead a reader."""

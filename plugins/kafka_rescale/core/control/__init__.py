"""What does the control topic keep? One file per concern; ``state.py`` is their sum."""

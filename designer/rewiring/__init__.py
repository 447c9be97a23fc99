"""A network laid onto one that is there: which switch becomes which, and how many cables stay where they are.

Nothing here decides what is bought; `moves.py` counts from two fabrics alone, and the certificate uses it, too.
"""

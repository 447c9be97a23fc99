"""Suites of instances with what is known of them, run and compared.

`suites` finds them, `records` says what is known, `measure` runs one instance, `run` all of them, `summary` adds up.
"""

"""The command line: one file a command. Only here does the package print and exit; `main` is the entry point."""

from designer.cli.app import main

__all__ = ["main"]

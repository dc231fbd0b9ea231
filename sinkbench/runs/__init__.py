"""Stored runs: writing and reading their folders, listing them, comparing two of them.

It touches files but never a service; `tables` and `report` show a comparison.
"""

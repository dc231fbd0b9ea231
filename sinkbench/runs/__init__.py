"""Stored runs: writing and reading their folders, listing them, comparing two of them. No service is contacted."""

"""A run while it goes on, for a person: on a terminal, and in a browser.

`state` is told everything and touches nothing; `terminal` and `page` show what it holds, in threads of their own, so
that what is measured waits for neither.
"""

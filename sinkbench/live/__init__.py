"""A run while it goes on, for a person: on a terminal, and in a browser.

`state` holds what `terminal` and `page` show in threads of their own, so that no measurement waits for a view.
Nothing here asks a service, or decides how a run goes on.
"""

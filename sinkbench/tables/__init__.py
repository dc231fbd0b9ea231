"""A run, or a comparison, as text: tables and sentences for a terminal, Markdown and exports for other programs.

Nothing is computed here that another room decides: figures come from `summary` and `runs`."""

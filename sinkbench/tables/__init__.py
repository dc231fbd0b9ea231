"""A run or a comparison as text: for a terminal, as Markdown, and exports. Figures come from `summary` and `runs`."""

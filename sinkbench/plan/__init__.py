"""Plans, cells, the order of trials, the search for a capacity, and sizes of trials. Pure, except for reading files."""

"""A data set: the user's own records, read from a file or a topic, in place of NOAA's.

Each record keeps its bytes; only the member "bench" is added, before its closing brace."""

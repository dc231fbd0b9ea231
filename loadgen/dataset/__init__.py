"""The user's own records, from a file or a topic. Each keeps its bytes; only "bench" is added, as its last member."""

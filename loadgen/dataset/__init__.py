"""A data set: the user's own records, read from a file or a topic, to be loaded in place of NOAA's.

    source      a file or a topic becomes a data set
    formats     the records of a file, one by one
    topic       the records of a topic, up to its end
    record      what a record must be, how it gets the member "bench", and where its key is
    facts       what the records are like
    store       the records in memory, and the file that hands them on
    maker       makes the records of a load from them

Each record keeps its own bytes; only the member "bench" is added, before its closing brace.
"""

"""A data set: records of the user's own, read from a file or a topic, to be loaded in place of NOAA's.

    source      a file or a topic becomes a data set
    formats     the records of a file of JSON, one by one, with their lines; `tables` those of CSV and Parquet
    topic       the records of a topic, up to its end
    record      what a record must be, and how it gets the member "bench"; `keypath` finds its key
    facts       what the records are like
    held        the records that are held, and the file that hands them on
    maker       makes the records of a load from them

Each record keeps its own bytes; only the member "bench" is added, before its closing brace.
"""

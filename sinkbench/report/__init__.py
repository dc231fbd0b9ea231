"""A run as one HTML page that needs no network and no program to be read: the command `report`.

`page` says what comes in which order; `lead`, `tables`, `throughput`, `timeline`, `latencies` and `costs` make its
parts; `draw` and `svg` make pictures of numbers, `html` makes a text of the parts. Matplotlib and Jinja take a second
to load, so nothing outside of this package imports it before it is asked for a report.
"""

import logging

# Without a home that it can write to, matplotlib advises at length where to keep its list of fonts.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

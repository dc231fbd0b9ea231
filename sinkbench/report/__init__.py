"""A run as one HTML page that needs no network and no program to be read: the command `report`.

`page` orders the parts. `overview` makes the first screen, of `lead` and `missing`; `tables`, `throughput`,
`timeline`, `latencies` and `costs` make the rest. `draw` and `svg` make pictures of numbers, `html` makes the page.
Matplotlib and Jinja take a second to load, so no other room imports this one before a report is asked for.
Nothing is measured or decided here, and no service is asked.
"""

import logging

# Without a home that it can write to, matplotlib advises where to keep its list of fonts.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

"""The command `report`: a run as one HTML page that needs no network; `page` orders the parts. Matplotlib and Jinja
load slowly, so other rooms import this one only when needed."""

import logging

# Without a writable home, matplotlib logs advice about its font cache.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

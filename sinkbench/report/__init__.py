"""The command `report`: a run as one HTML page that needs no network; `page` orders the parts. Jinja loads slowly, so
other rooms import this one only when needed."""

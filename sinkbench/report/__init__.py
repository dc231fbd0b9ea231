"""The command `report`: a run as one HTML page that needs no network. Jinja loads slowly: import it when needed."""

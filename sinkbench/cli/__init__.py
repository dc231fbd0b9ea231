"""The commands: they read arguments, call the other rooms and print.

Nothing is measured, decided or formatted here."""

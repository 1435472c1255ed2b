"""The command `jaxexport`: a file for each command. `cli.entry` starts it, and imports only what a command needs."""

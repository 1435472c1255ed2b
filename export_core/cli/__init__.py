"""The command `jaxexport`: one file a command. `cli.entry` starts it; nothing is imported before a command needs it."""

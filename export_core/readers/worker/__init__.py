"""Cold processes: the program that a reader runs, the client that gives it cells, and the messages between the two."""

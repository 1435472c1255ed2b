"""The atlas: how every part of the corpus of programs works in every release. `nox -s atlas` makes it."""

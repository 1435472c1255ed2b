"""Every part of the corpus, in every release: `nox -s atlas`."""

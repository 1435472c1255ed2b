"""Why a cell fails: since which release, by which operation, and what to do."""

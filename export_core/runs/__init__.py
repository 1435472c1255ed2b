"""The files of a run: plan, journal, results, summary; and runs that are continued, merged or compared."""

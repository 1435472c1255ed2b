"""`jaxexport explain`: why a cell fails, what to do, and a bundle that shows it to somebody else."""

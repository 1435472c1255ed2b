"""The same cells on other machines: jobs, clusters, and the Dask engine."""

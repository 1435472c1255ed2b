"""May an artifact be deployed in a place: the answer from stored results, and else from what its bytes foresee."""

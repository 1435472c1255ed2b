"""MLIR bytecode: the module inside an artifact."""

"""Models, solvers and samplers at real sizes, as marked tests."""

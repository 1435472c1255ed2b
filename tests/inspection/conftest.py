from artifacts import jaxexport

__all__ = ["jaxexport"]

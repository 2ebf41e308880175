"""What is wrong with something the other side wrote."""

from __future__ import annotations


class WireError(ValueError):
    """It does not follow the protocol; `field` names the part at fault, empty for the whole."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field

"""Texts as the file can hold them."""


def storable(text: str) -> str:
    """As UTF-8 can hold it; what a model answers may have halves of characters."""
    return text.encode(errors="replace").decode()

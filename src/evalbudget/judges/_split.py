"""Lists as a user types them: commas part the entries, but not within brackets, braces or quotes."""


def split_entries(text: str) -> list[str]:
    """The entries of ``a,'b,c',{d: 1, e: 2}``: three of them here."""
    pieces, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "{}[]":
            depth += 1 if letter in "{[" else -1
        elif letter == "," and depth == 0:
            pieces.append("")
            continue
        pieces[-1] += letter
    return pieces

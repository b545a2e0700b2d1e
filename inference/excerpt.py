"""Long texts of programs, cut for rows and reports so that what is left can be read."""


def excerpt(text: str, length: int) -> str:
    """At most `length` characters: whole words, and a mark that there was more."""
    if len(text) <= length:
        return text
    kept = text[: length - 1]
    at = max(kept.rfind(" "), kept.rfind("\n"))
    whole = text[length - 1].isspace() or at < length // 2  # a path of that length has no words
    return (kept if whole else kept[:at]).rstrip() + "…"

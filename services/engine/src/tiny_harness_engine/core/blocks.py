"""Delimited blocks: how text that is data stands in a model's window (DESIGN: untrusted text). Pure."""

import re


def in_block(name: str, text: str) -> str:
    """Put a text between tags that it can neither end nor open again: a `<` before the tag's name becomes `&lt;`."""
    inside = re.sub(rf"<(?=[\s/]*{name}\b)", "&lt;", text, flags=re.IGNORECASE)
    return f"<{name}>\n{inside}\n</{name}>"

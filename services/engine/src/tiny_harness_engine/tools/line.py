"""Lines out of a stream of bytes, in bounded memory and linear time."""

from collections.abc import Iterator


class Lines:
    """Splits what it is fed at line feeds."""

    def __init__(self, max_bytes: int, *, keeps_long: bool = False) -> None:
        """Begin.

        Args:
            max_bytes: What a line may have.
            keeps_long: Cut longer ones, instead of giving up.
        """
        self._max_bytes = max_bytes
        self._keeps_long = keeps_long
        self._parts: list[bytes] = []
        self._size = 0
        self.is_over = False
        """A line was too long, and that is the end."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take bytes, and give the lines that they complete."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            if self.is_over:
                return
            line = b"".join(self._parts)
            self._parts, self._size = [], 0
            if line.strip():
                yield line
        self._add(rest)

    def _add(self, part: bytes) -> None:
        room = self._max_bytes - self._size
        if len(part) > room:
            self.is_over = self.is_over or not self._keeps_long
            part = part[:room]
        if part:
            self._parts.append(part)
            self._size += len(part)

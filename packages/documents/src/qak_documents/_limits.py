"""What one extraction may use."""

from dataclasses import dataclass, fields

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionLimits:
    """Upper bounds of one extraction; every one must be greater than 0.

    The defaults take files up to 512 MiB with about 5 million tokens of text, the bounds of the OpenAI file search.

    Attributes:
        max_bytes: size of the source file.
        max_output_chars: length of the Markdown, in code points.
        max_blocks: headings, paragraphs and the rest; each costs its reader some hundred bytes, however short it is.
        max_memory_bytes: address space of the child process; about 150 MiB are its floor.
        cpu_s: processor time of the child process.
        wall_s: time from start to end of the child process, after which its whole process group is killed.
        max_archive_entries: members of an Office, OpenDocument or EPUB file; an archive inside is one.
        max_archive_bytes: declared size of all members once unpacked; an archive inside counts as it is.
        max_archive_ratio: unpacked to packed size, looked at from 16 MiB unpacked on.
    """

    max_bytes: int = 512 * _MIB
    max_output_chars: int = 20_000_000
    max_blocks: int = 500_000
    max_memory_bytes: int = 1024 * _MIB
    cpu_s: float = 60.0
    wall_s: float = 120.0
    max_archive_entries: int = 10_000
    max_archive_bytes: int = 1024 * _MIB
    max_archive_ratio: float = 100.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"ExtractionLimits.{field.name} is {value!r}, expected a number greater than 0.")

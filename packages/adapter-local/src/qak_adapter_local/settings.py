"""What ``qak.toml`` may say about the local library."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from qak_adapter_local._summary import DEFAULT_TIMEOUT_S
from qak_adapter_local.library import MAX_BYTES, MAX_DOCUMENTS
from qak_core.authoring import Secret

_MAX_BYTES = 512 * 1024 * 1024


def _default_directory() -> Path:
    from platformdirs import user_data_path

    return user_data_path("qak", appauthor=False) / "library"


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSettings:
    """Settings of the adapter ``local``; every one has a default.

    Attributes:
        directory: of the library; by default ``qak/library`` where the platform keeps a user's data.
        folder: search this directory in place instead of a library.
        index_directory: with ``folder``: where to keep its index between runs.
        owner_id: with ``folder``: the only owner who may search it; by default every owner may.
        excerpts: return matching passages instead of title, gist and sections.
        max_documents: of one owner.
        max_bytes: of one file.
        summary_api_key: for the chat call that summarizes; by default ``QWEN_AUDIO_MEMORY_API_KEY``, where set.
        summary_base_url: of the chat endpoint; by default ``QWEN_AUDIO_MEMORY_BASE_URL``.
        summary_model: by default ``QWEN_AUDIO_MEMORY_MODEL``.
        summary_timeout_s: for the whole call.
        summary: whether to ask a model at all.
    """

    directory: Path = field(default_factory=_default_directory)
    folder: Path | None = None
    index_directory: Path | None = None
    owner_id: str | None = None
    excerpts: bool = False
    max_documents: int = MAX_DOCUMENTS
    max_bytes: int = MAX_BYTES
    summary: bool = True
    summary_api_key: Secret | None = None
    summary_base_url: str | None = None
    summary_model: str | None = None
    summary_timeout_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = [
            f"{name}: expected at least 1, got {value}"
            for name in ("max_documents", "max_bytes")
            if (value := getattr(self, name)) < 1
        ]
        if self.max_bytes > _MAX_BYTES:
            problems.append(
                f"max_bytes: expected at most {_MAX_BYTES}, which the converter takes, got {self.max_bytes}"
            )
        if not 0 < self.summary_timeout_s <= 600:
            problems.append(f"summary_timeout_s: expected more than 0 and at most 600, got {self.summary_timeout_s:g}")
        if self.summary_base_url is not None and not self.summary_base_url.startswith(("https://", "http://")):
            problems.append("summary_base_url: expected an address that starts with https:// or http://")
        problems += [
            f"{name}: means something only together with folder"
            for name in ("index_directory", "owner_id")
            if self.folder is None and getattr(self, name) is not None
        ]
        if problems:
            raise ValueError("\n".join(problems))

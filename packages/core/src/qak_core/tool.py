"""The ``knowledge`` tool, the only thing a model sees (protocol section 7)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from qak_core._texts import ARGUMENTS, ERROR_TEXTS_ZH, TOOL_DESCRIPTION, Language
from qak_core.errors import KnowledgeError, KnowledgeInvalidRequest, KnowledgeUnconfigured
from qak_core.protocol import (
    DEFAULT_TOP_K,
    MAX_KNOWLEDGE_BASE_IDS,
    MAX_QUERY_CHARS,
    MAX_TOP_K,
)
from qak_core.runtime import KnowledgeRuntime
from qak_core.signals import CancelSignal

TOOL_NAME = "knowledge"
TOOL_SWITCH = "QWEN_AUDIO_KNOWLEDGE_TOOL_ENABLED"

_MAX_LISTED_BASES = 64  # a longer enumeration would crowd out the conversation; ids are checked all the same


class KnowledgeTool:
    """Offers a runtime to a model: a definition, and calls with arguments that are not trusted."""

    def __init__(
        self, runtime: KnowledgeRuntime, *, language: Language | None = None, enabled: bool | None = None
    ) -> None:
        """Wrap a runtime.

        Args:
            runtime: whom to ask.
            language: of the definition and the error texts; the runtime's if absent.
            enabled: ``False`` hides the tool only; by default the environment variable
                ``QWEN_AUDIO_KNOWLEDGE_TOOL_ENABLED`` decides (0, false, no and off hide it).
        """
        self._runtime = runtime
        self._language: Language = language or runtime.language
        self._enabled = tool_enabled(os.environ) if enabled is None else enabled

    @property
    def available(self) -> bool:
        """Whether the tool exists: a provider is configured and the tool is not switched off."""
        return self._enabled and self._runtime.configured

    def definition(self, form: Literal["openai", "mcp", "json_schema"] = "openai") -> dict[str, Any] | None:
        """Return the tool's definition, or ``None`` while the tool does not exist.

        Args:
            form: ``openai`` for a function tool, ``mcp`` for an MCP tool, ``json_schema`` for the arguments alone.
        """
        if not self.available:
            return None
        schema = self._schema()
        description = TOOL_DESCRIPTION[self._language]
        if form == "json_schema":
            return schema
        if form == "mcp":
            return {
                "name": TOOL_NAME,
                "description": description,
                "inputSchema": schema,
                "annotations": {"readOnlyHint": True},
            }
        return {
            "type": "function",
            "function": {"name": TOOL_NAME, "description": description, "parameters": schema},
        }

    async def call(
        self,
        arguments: Mapping[str, Any] | str,
        *,
        owner_id: str,
        session_id: str = "",
        turn_id: str = "",
        trace_id: str = "",
        signal: CancelSignal | None = None,
    ) -> dict[str, Any]:
        """Run a model's call and return the envelope; every failure is an envelope too.

        Args:
            arguments: what the model wrote, as a mapping or as JSON text; not trusted.
            owner_id: from the host, as are the others; no argument can set or widen it.
            session_id: the conversation.
            turn_id: the turn.
            trace_id: for the operator.
            signal: the caller's cancellation, passed on.
        """
        try:
            if not self.available:
                raise KnowledgeUnconfigured
            answer = await self._runtime.search(
                **_read_arguments(arguments),
                owner_id=owner_id,
                session_id=session_id,
                turn_id=turn_id,
                trace_id=trace_id,
                signal=signal,
            )
        except KnowledgeError as error:
            envelope = error.to_dict()
            if self._language == "zh":
                envelope["message"] = ERROR_TEXTS_ZH[error.code]
            return envelope
        return answer.to_dict()

    def _schema(self) -> dict[str, Any]:
        texts = ARGUMENTS[self._language]
        base_id: dict[str, Any] = {"type": "string"}
        base_text = texts["knowledge_base_ids"]
        bases = self._runtime.description.knowledge_bases if self._runtime.description else ()
        if 0 < len(bases) <= _MAX_LISTED_BASES:
            base_id["enum"] = [base.id for base in bases]
            labels = [f"{base.id} = {base.label}" for base in bases if base.label]
            base_text = " ".join([base_text, "; ".join(labels)]).strip()
        return {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": texts["query"],
                    "minLength": 1,
                    "maxLength": MAX_QUERY_CHARS,
                },
                "knowledge_base_ids": {
                    "type": "array",
                    "description": base_text,
                    "items": base_id,
                    "maxItems": MAX_KNOWLEDGE_BASE_IDS,
                },
                "top_k": {
                    "type": "integer",
                    "description": texts["top_k"],
                    "minimum": 1,
                    "maximum": MAX_TOP_K,
                    "default": DEFAULT_TOP_K,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }


def tool_enabled(environ: Mapping[str, str]) -> bool:
    """Whether the environment leaves the tool switched on."""
    return environ.get(TOOL_SWITCH, "").strip().lower() not in {"0", "false", "no", "off"}


def _read_arguments(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise KnowledgeInvalidRequest("the arguments are not JSON") from None
    if not isinstance(arguments, Mapping) or not set(arguments) <= {"query", "knowledge_base_ids", "top_k"}:
        raise KnowledgeInvalidRequest
    given = {name: value for name, value in arguments.items() if value is not None}
    return {"query": "", **given}

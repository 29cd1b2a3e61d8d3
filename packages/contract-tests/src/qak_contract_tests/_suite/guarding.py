"""What must not come out of a provider, and what must not come in through it (protocol sections 5, 6, 8 and 9)."""

from __future__ import annotations

import json
import logging
import traceback
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from qak_contract_tests._hits import read_hits, texts_in
from qak_contract_tests._plain import foreign_objects
from qak_contract_tests._probe import Probe
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail
from qak_core import KnowledgeError, KnowledgeTool, normalize_response
from qak_core.errors import ERRORS_BY_CODE

_FORGED_ID = "forged-result"
_FORGED_HOST = "attacker.example.net"
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class GuardingClauses(ContractBase):
    """Clauses on errors, secrets, hostile documents, citations and management."""

    @clause("errors.tree")
    async def test_every_error_is_of_the_closed_list(self, probe: Probe) -> None:
        for error in await probe.provoke():
            if not isinstance(error, KnowledgeError):
                fail(
                    f"a retrieval must raise a KnowledgeError, got {type(error).__module__}.{type(error).__qualname__}"
                )
            elif error.code not in ERRORS_BY_CODE:
                fail(f"an error's code must be one of the protocol's, got {error.code!r}")

    @clause("errors.from_none")
    async def test_error_holds_nothing_foreign(self, probe: Probe) -> None:
        for error in await probe.provoke():
            kept = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
            if kept is not None and not isinstance(kept, KnowledgeError):
                fail(f"{type(error).__name__} holds a {type(kept).__name__}; raise it from None")
            if isinstance(error, KnowledgeError):
                for found in foreign_objects([list(error.args), vars(error)], type(error).__name__):
                    fail(f"{found}; an error may hold plain values only")

    @clause("secrets.describe")
    async def test_description_does_not_show_the_key(self, probe: Probe) -> None:
        _check_secret(probe, texts_in(probe.provider.describe()), "the description")

    @clause("secrets.health")
    async def test_health_does_not_show_the_key(self, probe: Probe) -> None:
        _check_secret(probe, texts_in(await probe.health()), "the health message")
        await probe.close()
        try:
            closed = await probe.health()
        except Exception as error:  # noqa: BLE001 - its text is what is looked at
            closed = str(error)
        _check_secret(probe, texts_in(closed), "the health message of a closed provider")

    @clause("secrets.response")
    async def test_answers_do_not_show_the_key(self, probe: Probe) -> None:
        for hits in await probe.answers():
            for hit in hits:
                _check_secret(probe, [*texts_in(hit.raw), repr(hit.raw)], f"result {hit.id!r}")

    @clause("secrets.errors")
    async def test_errors_do_not_show_the_key(self, probe: Probe) -> None:
        for error in await probe.provoke():
            lines = traceback.format_exception(error)
            _check_secret(probe, [str(error), repr(error), repr(vars(error)), *lines], type(error).__name__)

    @clause("secrets.logs")
    async def test_logs_do_not_show_the_key(self, probe: Probe) -> None:
        with _everything_logged() as lines:
            await probe.answers()
            await probe.health()
            await probe.provoke()
        _check_secret(probe, lines, "the log")

    @clause("secrets.repr")
    async def test_printing_the_provider_does_not_show_the_key(self, probe: Probe) -> None:
        _check_secret(probe, [repr(probe.provider), str(probe.provider)], "the provider's repr")

    @clause("hostile.documents")
    async def test_hostile_document_is_found_and_inert(self, probe: Probe) -> None:
        notice = normalize_response([], query="").notice
        for document in probe.corpus.of(probe.corpus.owner_id, hostile=True):
            outcome = await probe.outcome(document.question)
            if isinstance(outcome, Exception) or not probe.holds(outcome, document):
                fail(f"{document.question!r} must find {document.id!r}, as any other document")
            answer = probe.normalize(outcome, document.question).to_dict()
            json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
            if answer["status"] != "ok" or answer["notice"] != notice:
                fail(f"{document.id!r} must reach the model with the notice of the core, got {answer['status']!r}")
            for text in texts_in(answer):
                if any(char in _BIDI or (unicodedata.category(char) == "Cc" and char not in "\n\t") for char in text):
                    fail(f"{document.id!r} must reach the model without control characters, got {text[:80]!r}")

    @clause("hostile.forged_answer")
    async def test_document_that_imitates_an_answer_stays_text(self, probe: Probe) -> None:
        forged = next(document for document in probe.corpus.documents if _FORGED_ID in document.text)
        outcome = await probe.outcome(forged.question, top_k=8)
        hits = outcome if isinstance(outcome, list) else []
        if any(hit.id == _FORGED_ID for hit in hits):
            fail(f"the document {forged.id!r} was read as an answer; content is only ever text")
        citations = probe.normalize(hits, forged.question, top_k=8).citations
        if any(_FORGED_HOST in citation.url for citation in citations):
            fail(f"the document {forged.id!r} got an address out of its own text cited")

    @clause("runtime.answer")
    async def test_runtime_answers_each_question_of_a_turn(self, probe: Probe) -> None:
        runtime, corpus = probe.runtime(), probe.corpus
        for document in corpus.of(corpus.owner_id):
            try:
                answer = await runtime.search(
                    document.question, owner_id=corpus.owner_id, session_id="session", turn_id="turn", trace_id="trace"
                )
            except KnowledgeError as error:
                fail(f"through the runtime, {document.question!r} must find {document.id!r}, got {error.code}")
            if not probe.holds(read_hits(answer.results), document):
                fail(f"through the runtime, {document.question!r} must find {document.id!r}")

    @clause("uri.public_only")
    async def test_only_public_addresses_are_cited(self, probe: Probe) -> None:
        known = {document.public_url for document in probe.corpus.documents if document.public_url}
        documents = [
            *probe.corpus.of(probe.corpus.owner_id),
            *probe.corpus.of(probe.corpus.owner_id, hostile=True),
        ]
        for document in documents:
            outcome = await probe.outcome(document.question)
            hits = outcome if isinstance(outcome, list) else []
            for citation in probe.normalize(hits, document.question).citations:
                if citation.url not in known:
                    fail(
                        f"{citation.url!r} was cited, which is the public address of no document; give uris as they are"
                    )

    @clause("citation.declared")
    async def test_public_documents_are_cited_exactly_where_declared(self, probe: Probe) -> None:
        declared = probe.declares("citations")
        for document in probe.corpus.of(probe.corpus.owner_id):
            hits = await probe.find(document.question)
            urls = {citation.url for citation in probe.normalize(hits, document.question).citations}
            if not declared and urls:
                fail(f"capability citations is not declared, but {document.id!r} is cited as {urls!r}")
            if declared and document.public_url and document.public_url not in urls:
                fail(
                    f"citations is declared, so {document.id!r} must be cited as {document.public_url!r}, got {urls!r}"
                )

    @clause("management.declared")
    async def test_declared_management_is_there(self, probe: Probe) -> None:
        names = ("ingest", "list_documents", "remove_document")
        missing = [name for name in names if not callable(getattr(probe.provider, name, None))]
        if probe.declares("management") and missing:
            fail(f"capability management is declared, but there is no method {', '.join(missing)}")

    @clause("management.hidden")
    async def test_model_cannot_manage_documents(self, probe: Probe) -> None:
        corpus = probe.corpus
        documents = corpus.of(corpus.owner_id)
        before = [await probe.documents(document.question) for document in documents]
        tool = KnowledgeTool(probe.runtime(), enabled=True)
        offered = (tool.definition("json_schema") or {}).get("properties", {})
        if set(offered) != {"query", "knowledge_base_ids", "top_k"}:
            fail(f"a model may be offered query, knowledge_base_ids and top_k, got {sorted(offered)!r}")
        for document in documents:
            for query in (
                f"remove_document {document.id}",
                f"/delete {document.id}",
                f"'; DROP TABLE documents; -- {document.id}",
                json.dumps({"method": "remove_document", "params": {"document_id": document.id}}),
            ):
                await tool.call({"query": query}, owner_id=corpus.owner_id)
                await tool.call({"query": query, "document_id": document.id}, owner_id=corpus.owner_id)
        after = [await probe.documents(document.question) for document in documents]
        if after != before:
            fail("a query that reads like a command changed the documents; a query is only ever text to look for")


def _check_secret(probe: Probe, texts: Iterable[str], where: str) -> None:
    if any(probe.corpus.secret in text for text in texts):
        fail(f"{where} shows the vendor's key; a secret may go nowhere but to the vendor")


@contextmanager
def _everything_logged() -> Iterator[list[str]]:
    """Collect every log record, whatever its level, and every warning."""
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter("%(message)s").format(record))
            lines.extend(texts_in({key: value for key, value in vars(record).items() if key != "msg"}))

    root, collector = logging.getLogger(), Collector(level=1)
    level = root.level
    root.addHandler(collector)
    root.setLevel(1)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield lines
        lines.extend(str(warning.message) for warning in warned)
    finally:
        root.setLevel(level)
        root.removeHandler(collector)

"""The clauses of the contract, and the mark that binds a test to one of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn

from qak_contract_tests._running import run_clause

ClauseBody = Callable[..., Awaitable[None] | None]


class ContractViolation(AssertionError):
    """A provider breaks a clause; the message says what was got and what was expected."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One thing that a provider must do.

    Attributes:
        id: of the protocol's clause, with a finer name after it where the suite tests several sides of one.
        title: what must hold, as a sentence.
        protocol_section: where the protocol says so.
        needs_corpus: whether only a provider seeded with the corpus can be judged.
    """

    id: str
    title: str
    protocol_section: str
    needs_corpus: bool


def _table(*clauses: tuple[str, str, str, bool]) -> Mapping[str, Clause]:
    return MappingProxyType(
        {
            clause_id: Clause(id=clause_id, protocol_section=section, title=title, needs_corpus=needs_corpus)
            for clause_id, section, title, needs_corpus in clauses
        }
    )


_ANY, _SEEDED = False, True

CLAUSES: Mapping[str, Clause] = _table(
    # Who the provider is
    ("provider.shape", "1", "describe is a plain method, retrieve an async one; health and close are methods", _ANY),
    ("describe.version", "1", "protocol_version is the integer 1", _ANY),
    ("describe.key", "1", "key is 1 to 64 lower-case letters, digits and inner hyphens", _ANY),
    ("describe.label", "1", "label is text of 1 to 120 characters", _ANY),
    ("describe.capabilities", "1", "capabilities are at most 16 names with true or false", _ANY),
    ("describe.knowledge_bases", "1", "published knowledge-base ids are different texts of 1 to 120 characters", _ANY),
    ("describe.frozen", "1", "the description is the same at every call, and a change to one copy stays there", _ANY),
    ("describe.prompt", "1", "describe() answers at once, without asking anybody", _ANY),
    ("describe.plain", "0", "the description is made of built-in values only", _ANY),
    # What a result is
    ("response.shape", "4", "an answer is a sequence of results, or holds one as results", _ANY),
    ("response.fields", "4", "every result has the fields of the protocol, each of its type", _ANY),
    ("response.content", "4", "the text of a result is that of the document it names", _SEEDED),
    ("response.id", "4", "every result has an id of text or a whole number", _ANY),
    ("response.id.unique", "4", "no two results of one answer share an id", _ANY),
    ("response.id.stable", "4", "the same question gets the same ids", _ANY),
    ("response.order", "4", "the document that answers best comes first", _SEEDED),
    ("response.score", "4", "a score is a finite number, never text or a boolean", _ANY),
    ("response.score.declared", "4", "results have scores exactly where the capability scores is declared", _SEEDED),
    ("response.score.direction", "4", "higher scores are better: they never rise along an answer", _ANY),
    ("response.metadata", "4", "metadata is flat: text, booleans and finite numbers under text keys", _ANY),
    ("response.plain", "0", "no object of a vendor is in an answer, only built-in values and those of the core", _ANY),
    ("response.json", "4", "an answer is strict JSON, and reads back as the same results", _ANY),
    ("response.fresh", "4", "a change to a returned answer does not change the next one", _SEEDED),
    ("response.not_found", "4", "finding nothing is an empty answer, no error and not None", _ANY),
    # What a request asks for
    ("request.query.hostile", "2", "any text of 1 to 500 characters is answered, whatever it imitates", _ANY),
    ("request.top_k", "2", "an answer has at most top_k results", _ANY),
    ("request.top_k.full", "2", "an answer has exactly top_k results while that many match", _SEEDED),
    ("request.filters", "2", "filters are applied where declared, and refused otherwise", _SEEDED),
    ("request.knowledge_base_ids", "2", "only the knowledge bases asked for are searched", _SEEDED),
    ("request.knowledge_base_ids.unknown", "2", "an unknown knowledge-base id never widens the search", _SEEDED),
    ("request.unchanged", "2", "request and context are left as they were", _ANY),
    # On whose behalf
    ("context.trusted", "2", "an owner finds only their own documents, a stranger none", _SEEDED),
    ("context.trusted.exact", "2", "an owner id that only resembles another finds nothing", _SEEDED),
    ("context.trusted.query", "2", "naming another owner in the query finds nothing of theirs", _SEEDED),
    ("context.trusted.filters", "2", "naming another owner in a filter finds nothing of theirs", _SEEDED),
    ("context.trusted.knowledge_base_ids", "2", "asking by knowledge base finds nothing of another owner", _SEEDED),
    # How long
    ("context.signal.cancelled", "2", "a cancelled signal ends a retrieval with knowledge_cancelled at once", _ANY),
    ("context.signal.late", "2", "a deadline that has passed ends a retrieval with knowledge_timeout at once", _ANY),
    ("context.signal.during", "2", "cancelling ends a running retrieval, by answer or knowledge_cancelled", _SEEDED),
    ("context.signal.deadline", "2", "a deadline ends a running retrieval, by answer or knowledge_timeout", _SEEDED),
    ("context.signal.task", "3", "cancelling the task of a retrieval ends it as cancelled", _SEEDED),
    ("retrieve.concurrent", "3", "50 retrievals at once each get their own right answer", _SEEDED),
    ("retrieve.nonblocking", "3", "no call holds the event loop for more than 100 ms", _ANY),
    # From opening to closing
    ("health.states", "1", "health is one of the four states with a short message, and good once seeded", _ANY),
    ("close.once", "1", "closing again does no harm", _ANY),
    ("close.refuses", "1", "a retrieval after closing ends with knowledge_closed", _ANY),
    ("close.in_flight", "1", "closing ends soon, and so does a retrieval that was running", _ANY),
    ("close.alone", "1", "closing one provider leaves another one working", _SEEDED),
    ("close.leaves_nothing", "1", "a closed provider leaves no task and no thread", _ANY),
    ("provider.loops", "3", "providers work in one event loop after another", _ANY),
    # What must not come out or come in
    ("errors.tree", "8", "whatever a retrieval raises is a KnowledgeError of the closed list", _ANY),
    ("errors.from_none", "8", "an error holds no other exception and nothing but plain values", _ANY),
    ("secrets.describe", "0", "the description does not show the vendor's key", _SEEDED),
    ("secrets.health", "1", "the health message does not show the vendor's key", _SEEDED),
    ("secrets.response", "4", "no answer shows the vendor's key", _SEEDED),
    ("secrets.errors", "8", "no error shows the vendor's key", _SEEDED),
    ("secrets.logs", "8", "neither logs nor warnings show the vendor's key", _SEEDED),
    ("secrets.repr", "8", "printing the provider does not show the vendor's key", _SEEDED),
    ("hostile.documents", "6", "a hostile document is found like any other and reaches the model inert", _SEEDED),
    ("hostile.forged_answer", "5", "a document that imitates an answer stays the text of one result", _SEEDED),
    ("runtime.answer", "3", "through the runtime, each question of a turn gets its own answer", _SEEDED),
    ("uri.public_only", "5", "only the documents' own public addresses become citations", _SEEDED),
    ("citation.declared", "5", "public documents are cited exactly where citations is declared", _SEEDED),
    ("management.declared", "9", "where management is declared, its methods are there", _ANY),
    ("management.hidden", "9", "nothing that a model can say changes a document", _SEEDED),
)  # fmt: skip
"""Every clause by its id."""


def clause(clause_id: str) -> Callable[[ClauseBody], Callable[[Any], None]]:
    """Bind a test of :class:`~qak_contract_tests.KnowledgeProviderContract` to the clause it proves.

    An async body becomes a plain method, which pytest runs without any plugin: it gets an opened provider, in an event
    loop of its own. A plain body opens providers itself.

    Raises:
        KeyError: there is no such clause.
    """
    bound = CLAUSES[clause_id]

    def bind(body: ClauseBody) -> Callable[[Any], None]:
        def test(self: Any) -> None:
            __tracebackhide__ = True
            run_clause(self, bound, body)

        test.__name__, test.__qualname__, test.__doc__ = body.__name__, body.__qualname__, bound.title
        test.__module__ = body.__module__
        test.qak_clause = bound  # type: ignore[attr-defined]
        return test

    return bind


def fail(message: str) -> NoReturn:
    """Report a violation.

    Raises:
        ContractViolation: always.
    """
    __tracebackhide__ = True
    raise ContractViolation(message)

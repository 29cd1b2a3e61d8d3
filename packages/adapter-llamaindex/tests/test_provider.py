"""The provider: its knowledge bases, its errors, its end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_adapter_llamaindex._errors import ERRORS
from qak_core import (
    CancelSignal,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    SettingsError,
    assert_provider,
)

SECRETS = ("sk-planted-9f8e7d6c5b4a", "postgres://user:hunter2@db.internal", "a private question")


class Waiting(BaseRetriever):
    """Answers when it is let go."""

    def __init__(self, text: str = "lamp") -> None:
        self.text = text
        self.started = threading.Event()
        self.release = threading.Event()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.started.set()
        assert self.release.wait(20)
        return [NodeWithScore(node=TextNode(text=self.text))]


def found(*texts: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=text, text=text), score=0.5) for text in texts]


# Knowledge bases.


@pytest.fixture
def bases(fixed: Any) -> dict[str, Any]:
    return {"lamps": fixed(found("lamp 1", "lamp 2", "lamp 3")), "chairs": fixed(found("chair 1", "chair 2"))}


def test_all_knowledge_bases_are_asked_and_interleaved_by_rank(bases: Any, retrieve: Callable[..., Any]) -> None:
    provider = LlamaIndexProvider(knowledge_bases=bases, score="similarity")
    answer = retrieve(provider)
    assert [result.id for result in answer.results] == [
        "lamps:lamp 1",
        "chairs:chair 1",
        "lamps:lamp 2",
        "chairs:chair 2",
        "lamps:lamp 3",
    ]
    assert {result.score for result in answer.results} == {None}  # scores of two bases do not compare
    description = assert_provider(provider)
    assert [base.id for base in description.knowledge_bases] == ["lamps", "chairs"]
    assert not description.can("scores")


def test_only_the_knowledge_bases_named_are_asked(bases: Any, retrieve: Callable[..., Any]) -> None:
    answer = retrieve(LlamaIndexProvider(knowledge_bases=bases), knowledge_base_ids=("chairs",), top_k=1)
    assert [result.id for result in answer.results] == ["chairs:chair 1"]
    assert bases["lamps"].calls == []


def test_retriever_beside_knowledge_bases_answers_where_none_is_named(
    bases: Any, fixed: Any, retrieve: Callable[..., Any]
) -> None:
    provider = LlamaIndexProvider(fixed(found("everything")), knowledge_bases=bases)
    assert [result.id for result in retrieve(provider).results] == ["everything"]


@pytest.mark.parametrize("ids", [("tables",), ("lamps", "tables"), ("LAMPS",), ("*",)])
def test_unknown_knowledge_base_is_refused(bases: Any, retrieve: Callable[..., Any], ids: tuple[str, ...]) -> None:
    with pytest.raises(KnowledgeBaseUnknown):
        retrieve(LlamaIndexProvider(knowledge_bases=bases), knowledge_base_ids=ids)
    with pytest.raises(KnowledgeBaseUnknown):
        retrieve(LlamaIndexProvider(bases["lamps"]), knowledge_base_ids=ids)


def test_one_knowledge_base_that_fails_leaves_a_degraded_answer(
    bases: Any, fixed: Any, retrieve: Callable[..., Any]
) -> None:
    answer = retrieve(LlamaIndexProvider(knowledge_bases={**bases, "broken": fixed(RuntimeError("down"))}), top_k=2)
    assert [result.id for result in answer.results] == ["lamps:lamp 1", "chairs:chair 1"]
    assert answer.degraded == ("broken",)


def test_one_knowledge_base_that_hangs_leaves_a_degraded_answer(bases: Any, retrieve: Callable[..., Any]) -> None:
    waiting = Waiting()
    provider = LlamaIndexProvider(knowledge_bases={**bases, "slow": waiting})
    answer = retrieve(provider, top_k=2, signal=CancelSignal(1.0))
    assert answer.degraded == ("slow",)
    assert len(answer.results) == 2
    waiting.release.set()


def test_ids_are_unique_over_knowledge_bases(fixed: Any, retrieve: Callable[..., Any]) -> None:
    provider = LlamaIndexProvider(knowledge_bases={"a": fixed(found("same")), "b": fixed(found("same"))})
    assert [result.id for result in retrieve(provider).results] == ["a:same", "b:same"]


# Errors.


def raised(fixed: Any, error: BaseException, retrieve: Callable[..., Any]) -> KnowledgeError:
    with pytest.raises(KnowledgeError) as caught:
        retrieve(LlamaIndexProvider(fixed(error)), "a private question")
    return caught.value


def foreign(name: str, module: str, base: type[Exception] = Exception, **fields: Any) -> Exception:
    """Make an exception as a vendor's client raises it."""
    error = type(name, (base,), {"__module__": module})(*SECRETS)
    for key, value in fields.items():
        setattr(error, key, value)
    return error


class Response:
    def __init__(self, status_code: Any) -> None:
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(*SECRETS), KnowledgeTimeout),
        (ConnectionRefusedError(*SECRETS), KnowledgeUnavailable),
        (RuntimeError(*SECRETS), KnowledgeUnavailable),
        (KeyError(*SECRETS), KnowledgeUnavailable),
        (foreign("ReadTimeout", "httpx", foreign("TimeoutException", "httpx").__class__), KnowledgeTimeout),
        (foreign("APITimeoutError", "openai"), KnowledgeTimeout),
        (foreign("AuthenticationError", "openai"), KnowledgeUnauthorized),
        (foreign("RateLimitError", "openai"), KnowledgeRateLimited),
        (foreign("UnexpectedResponse", "qdrant_client", status_code=403), KnowledgeUnauthorized),
        (foreign("UnexpectedResponse", "qdrant_client", status_code=429), KnowledgeRateLimited),
        (foreign("UnexpectedResponse", "qdrant_client", status_code=422), KnowledgeInvalidRequest),
        (foreign("UnexpectedResponse", "qdrant_client", status_code=504), KnowledgeTimeout),
        (foreign("UnexpectedResponse", "qdrant_client", status_code=503), KnowledgeUnavailable),
        (foreign("HTTPStatusError", "httpx", response=Response(401)), KnowledgeUnauthorized),
        (foreign("HTTPStatusError", "httpx", response=Response("401")), KnowledgeUnavailable),
        (foreign("Odd", "vendor", status_code=True), KnowledgeUnavailable),
        (ExceptionGroup("several", [foreign("RateLimitError", "openai")]), KnowledgeRateLimited),
        (StopIteration(*SECRETS), KnowledgeUnavailable),
    ],
)
def test_error_is_translated_and_nothing_of_it_gets_out(
    fixed: Any, retrieve: Callable[..., Any], caplog: Any, error: Exception, expected: type[KnowledgeError]
) -> None:
    caplog.set_level(logging.DEBUG)
    failure = raised(fixed, error, retrieve)
    assert type(failure) is expected
    assert failure.__cause__ is None
    assert failure.__context__ is None
    shown = f"{failure!r} {failure} {failure.args} {vars(failure)} {caplog.text}"
    assert not any(secret in shown for secret in SECRETS)


def test_error_inside_a_wrapper_decides(fixed: Any, retrieve: Callable[..., Any]) -> None:
    wrapper = RuntimeError("gave up")
    wrapper.__cause__ = foreign("RateLimitError", "openai")
    assert type(raised(fixed, wrapper, retrieve)) is KnowledgeRateLimited


def test_chain_of_causes_that_has_no_end_is_left_after_a_few() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert type(ERRORS.translate(one)) is KnowledgeUnavailable


# Deadline, cancellation, closing.


def test_late_answer_is_dropped_and_the_provider_goes_on(retrieve: Callable[..., Any]) -> None:
    waiting = Waiting()
    provider = LlamaIndexProvider(waiting, max_workers=2)
    with pytest.raises(KnowledgeTimeout):
        retrieve(provider, signal=CancelSignal(0.1))
    waiting.release.set()
    assert [result.content for result in retrieve(provider).results] == ["lamp"]


def test_cancelling_ends_a_running_retrieval_at_once() -> None:
    waiting = Waiting()

    async def main() -> None:
        signal = CancelSignal(30.0)
        provider = LlamaIndexProvider(waiting)
        context = RetrievalContext(owner_id="alice", signal=signal)
        task = asyncio.ensure_future(provider.retrieve(RetrievalRequest(query="lamp"), context))
        await asyncio.to_thread(waiting.started.wait, 10)
        signal.cancel()
        with pytest.raises(KnowledgeCancelled):
            await asyncio.wait_for(task, 10)

    asyncio.run(main())
    waiting.release.set()


def test_closing_ends_a_running_retrieval_and_calls_aclose_once() -> None:
    waiting, closed = Waiting(), []

    async def aclose() -> None:
        closed.append(True)

    async def main() -> None:
        provider = LlamaIndexProvider(waiting, aclose=aclose)
        context = RetrievalContext(owner_id="alice")
        task = asyncio.ensure_future(provider.retrieve(RetrievalRequest(query="lamp"), context))
        await asyncio.to_thread(waiting.started.wait, 10)
        await asyncio.gather(provider.close(), provider.close())
        await provider.close()
        with pytest.raises(KnowledgeClosed):
            await asyncio.wait_for(task, 10)
        with pytest.raises(KnowledgeClosed):
            await provider.retrieve(RetrievalRequest(query="lamp"), context)
        assert (await provider.health()).status == "unavailable"

    asyncio.run(main())
    assert closed == [True]
    waiting.release.set()


def test_callers_share_bounded_threads_of_the_providers_own() -> None:
    threads: set[str] = set()

    class Sleeping(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            threads.add(threading.current_thread().name)
            time.sleep(0.01)
            return found("lamp")

    async def main() -> None:
        provider = LlamaIndexProvider(Sleeping(), max_workers=3)
        context = RetrievalContext(owner_id="alice")
        await asyncio.gather(*(provider.retrieve(RetrievalRequest(query="lamp"), context) for _ in range(20)))
        await provider.close()

    asyncio.run(main())
    assert len(threads) <= 3
    assert all(name.startswith("qak-llamaindex") for name in threads)


# Health and construction.


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, ProviderHealth(status="ready")),
        (ProviderHealth(status="degraded", message="slow"), ProviderHealth(status="degraded", message="slow")),
    ],
)
def test_health_is_what_the_host_says_and_else_ready(fixed: Any, said: Any, expected: ProviderHealth) -> None:
    async def asynchronous() -> Any:
        return said

    for health in (lambda: said, asynchronous):
        assert asyncio.run(LlamaIndexProvider(fixed([]), health=health).health()) == expected
    assert asyncio.run(LlamaIndexProvider(fixed([])).health()) == ProviderHealth(status="ready")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_the_hosts_own_callables_raise_stays_inside(fixed: Any, caplog: Any, asynchronous: bool) -> None:
    def blocking() -> Any:
        raise foreign("AuthenticationError", "openai", RuntimeError)

    async def awaited() -> Any:
        blocking()

    caplog.set_level(logging.DEBUG)
    failing = awaited if asynchronous else blocking
    provider = LlamaIndexProvider(fixed([]), health=failing, aclose=failing)
    health = asyncio.run(provider.health())
    assert health == ProviderHealth(status="unavailable", message="The health check raised AuthenticationError.")
    with pytest.raises(KnowledgeUnauthorized) as caught:
        asyncio.run(provider.close())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    shown = f"{health} {caught.value!r} {caught.value.args} {vars(caught.value)} {caplog.text}"
    assert not any(secret in shown for secret in SECRETS)


@pytest.mark.parametrize("arguments", [(), (None,), (object(),), ("module:factory",), ([],)])
def test_provider_refuses_what_is_neither_retriever_nor_index(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(SettingsError, match="retriever"):
        LlamaIndexProvider(*arguments)


def test_provider_refuses_a_host_filter_that_is_none(fixed: Any) -> None:
    with pytest.raises(SettingsError, match="filters: a filter's type"):
        LlamaIndexProvider(fixed([]), filters={"department": "sales"})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("caller_filters", value) for value in ("off", "Native", "", None, False)),
        *(("score", value) for value in ("cosine", "Similarity", "", None)),
        *((flag, value) for flag in ("nested_filters", "disable_tracing", "native_async") for value in ("no", 0, None)),
        *((key, value) for key in ("owner_key", "id_key") for value in ("", 5, False, ["owner"])),
        *((call, value) for call in ("health", "aclose") for value in ("app:close", 5)),
    ],
)
def test_provider_refuses_an_option_that_is_none_of_its_choices(fixed: Any, option: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"  - {option}: expected"):
        LlamaIndexProvider(fixed([]), **{option: value})


def test_description_can_not_be_changed_through_a_copy(fixed: Any) -> None:
    provider = LlamaIndexProvider(fixed([]), key="handbook", label="Handbook", score="similarity")
    provider.describe().capabilities["filters"] = False  # type: ignore[index]
    assert provider.describe().can("filters")
    assert provider.describe().can("scores")


def test_printing_a_provider_shows_no_secret(make_index: Callable[..., VectorStoreIndex]) -> None:
    index = make_index([TextNode(text="lamp")])
    assert "lamp" not in repr(LlamaIndexProvider(index))


def test_retrieval_warns_of_nothing(make_index: Callable[..., VectorStoreIndex], find: Callable[..., Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        find(make_index([TextNode(text="lamp")]), owner_key="owner")
    assert caught == []

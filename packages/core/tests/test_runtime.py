import asyncio
import gc
import logging
import threading
import traceback
import weakref
from types import SimpleNamespace

import pytest

from qak_core import (
    CancelSignal,
    KnowledgeBaseUnknown,
    KnowledgeBusy,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeFailed,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidRequest,
    KnowledgeInvalidResponse,
    KnowledgeOwnerRequired,
    KnowledgeQueryRequired,
    KnowledgeRateLimited,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
    KnowledgeUnconfigured,
    ProviderContractError,
    ProviderHealth,
)

from . import _hostile as hostile
from ._providers import RESULT, Patient, Provider, Raising, until

SECRETS = ["hunter2", "10.0.0.1", "Zx9Kq27LmPw4"]
SECRET_TEXT = "request to http://10.0.0.1/v1 failed: password=hunter2 Authorization: Bearer Zx9Kq27LmPw4"


class VendorError(Exception):
    """What a vendor raises: with a request, a body and a text that name credentials."""

    def __init__(self, text=SECRET_TEXT):
        super().__init__(text)
        self.request = {"headers": {"Authorization": text}}
        self.code = text


def shows_no_secret(error, caplog=None):
    """Check that neither the error, nor what it hangs on, nor the log shows anything of the provider's."""
    assert error.args == (type(error).text,)
    assert error.__cause__ is None
    assert error.__context__ is None
    seen = repr(error) + str(vars(error)) + "".join(traceback.format_exception(error)) + str(error.to_dict())
    frame = error.__traceback__
    while frame is not None:  # tools that report local variables show these, too
        if "/src/qak_core/" in frame.tb_frame.f_code.co_filename:
            seen += repr(frame.tb_frame.f_locals)
        frame = frame.tb_next
    if caplog is not None:
        seen += caplog.text
    assert [secret for secret in SECRETS if secret in seen] == []


async def failure(runtime, **fields):
    """Return the error of a search that must fail."""
    with pytest.raises(KnowledgeError) as caught:
        await runtime.search("q", **{"owner_id": "o", **fields})
    return caught.value


# The gate


@pytest.mark.clause("runtime.gate")
def test_a_runtime_without_a_provider_is_not_configured(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runtime = KnowledgeRuntime(None)

    async def scenario():
        assert not runtime.configured
        assert runtime.describe() == {"configured": False, "capabilities": {"knowledge": False}}
        assert isinstance(await failure(runtime), KnowledgeUnconfigured)
        assert (await runtime.health()).status == "unconfigured"
        await runtime.close()

    run(scenario())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("runtime.gate", "describe.frozen")
def test_a_runtime_describes_its_provider_as_it_was_at_composition():
    provider = Provider(capabilities={"filters": True}, knowledge_bases=["a"])
    runtime = KnowledgeRuntime(provider)
    provider.description = {**provider.description, "key": "other"}
    provider.description["capabilities"]["filters"] = False
    runtime.describe()["provider"]["key"] = "changed"
    assert runtime.describe() == {
        "configured": True,
        "capabilities": {"knowledge": True},
        "provider": {
            "protocol_version": 1,
            "key": "stand-in",
            "label": "A stand-in",
            "capabilities": {"filters": True},
            "knowledge_bases": [{"id": "a", "label": ""}],
        },
    }


@pytest.mark.clause("provider.shape")
def test_a_wrong_provider_fails_at_composition_and_not_in_a_turn():
    with pytest.raises(ProviderContractError):
        KnowledgeRuntime(object())


@pytest.mark.parametrize(
    "name",
    "timeout_s soft_deadline_s health_timeout_s close_timeout_s breaker_cooldown_s max_in_flight".split(),
)
@pytest.mark.parametrize("value", [0, -1, float("nan"), "1", None, True])
@pytest.mark.clause("runtime.deadline")
def test_a_bound_must_be_a_positive_number(name, value):
    with pytest.raises(ValueError, match=name):
        KnowledgeRuntime(Provider(), **{name: value})


# Requests


@pytest.mark.clause("context.trusted", "request.query", "request.top_k")
def test_a_provider_gets_a_neutral_request_and_the_hosts_context(run):
    provider = Provider(capabilities={"filters": True}, knowledge_bases=["a", "b"])
    runtime = KnowledgeRuntime(provider, timeout_s=60)
    answer = run(
        runtime.search(
            " 年费 ",
            owner_id="o",
            session_id="s",
            turn_id="t",
            trace_id="x",
            top_k=3,
            knowledge_base_ids=["b"],
            filters={"owner_id": "mallory"},
        )
    )
    [(request, context)] = provider.calls
    assert (request.query, request.top_k, request.knowledge_base_ids) == ("年费", 3, ("b",))
    assert request.filters == {"owner_id": "mallory"}
    assert (context.owner_id, context.session_id, context.turn_id, context.trace_id) == ("o", "s", "t", "x")
    assert 0 < context.signal.remaining() <= 60
    assert answer.to_dict()["results"] == [RESULT]


@pytest.mark.clause(
    "context.trusted", "request.query", "request.knowledge_base_ids", "request.filters", "describe.capabilities"
)
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"query": " "}, KnowledgeQueryRequired),
        ({"query": None}, KnowledgeInvalidRequest),
        ({"owner_id": ""}, KnowledgeOwnerRequired),
        ({"owner_id": None}, KnowledgeOwnerRequired),
        ({"session_id": 5}, KnowledgeInvalidRequest),
        ({"signal": object()}, KnowledgeInvalidRequest),
        ({"top_k": True}, KnowledgeInvalidRequest),
        ({"knowledge_base_ids": ["c"]}, KnowledgeBaseUnknown),
        ({"knowledge_base_ids": ["a", "c"]}, KnowledgeBaseUnknown),
        ({"knowledge_base_ids": "a"}, KnowledgeInvalidRequest),
        ({"filters": {"a": 1}}, KnowledgeFiltersUnsupported),
        ({"filters": {"a": object()}}, KnowledgeInvalidRequest),
    ],
)
def test_a_bad_request_is_refused_before_the_provider_hears_of_it(run, fields, expected):
    provider = Provider(capabilities={"filters": False}, knowledge_bases=["a", "b"])

    async def scenario():
        with pytest.raises(expected):
            await KnowledgeRuntime(provider).search(**{"query": "q", "owner_id": "o", **fields})

    run(scenario())
    assert provider.calls == []


@pytest.mark.clause("request.knowledge_base_ids")
def test_ids_pass_as_they_are_where_none_are_published(run):
    provider = Provider()
    run(KnowledgeRuntime(provider).search("q", owner_id="o", knowledge_base_ids=["anything"]))
    assert provider.calls[0][0].knowledge_base_ids == ("anything",)


# Outcomes


@pytest.mark.clause("response.shape", "runtime.deadline")
@pytest.mark.parametrize(
    "make", [lambda response: response, lambda response: {"results": response}], ids=["list", "mapping"]
)
def test_nothing_found_is_an_answer(run, make):
    answer = run(KnowledgeRuntime(Provider(make([]))).search("q", owner_id="o"))
    assert answer.status == "not_found"


@pytest.mark.clause("provider.shape")
def test_a_provider_that_returns_without_async_is_understood(run):
    provider = Provider()
    provider.retrieve = lambda request, context: [RESULT]
    assert run(KnowledgeRuntime(provider).search("q", owner_id="o")).status == "ok"


@pytest.mark.clause("runtime.errors", "response.shape")
@pytest.mark.parametrize(
    "response",
    [None, "text", {"wrong": []}, hostile.Opaque(), hostile.RaisingResults(), hostile.PanickingMapping(results=[])],
    ids=lambda it: type(it).__name__,
)
def test_an_unreadable_answer_is_an_invalid_response(run, response, caplog):
    error = run(failure(KnowledgeRuntime(Provider(response))))
    assert type(error) is KnowledgeInvalidResponse
    shows_no_secret(error, caplog)


class OwnTimeout(KnowledgeTimeout):
    code = "vendor_timeout http://10.0.0.1"
    text = SECRET_TEXT


class BadText(Exception):
    def __str__(self):
        raise VendorError


class NoException(BaseException):
    def __str__(self):
        return SECRET_TEXT


RAISED = [
    (VendorError(), KnowledgeFailed),
    (BadText(), KnowledgeFailed),
    (NoException(), KnowledgeFailed),
    (StopIteration(SECRET_TEXT), KnowledgeFailed),
    (StopAsyncIteration(SECRET_TEXT), KnowledgeFailed),
    (GeneratorExit(SECRET_TEXT), KnowledgeFailed),
    (ExceptionGroup(SECRET_TEXT, [VendorError()]), KnowledgeFailed),
    (TimeoutError(SECRET_TEXT), KnowledgeFailed),
    (asyncio.CancelledError(SECRET_TEXT), KnowledgeFailed),
    (KnowledgeCancelled(SECRET_TEXT), KnowledgeFailed),
    (KnowledgeError(SECRET_TEXT), KnowledgeFailed),
    (KnowledgeTimeout(SECRET_TEXT), KnowledgeTimeout),
    (OwnTimeout(), KnowledgeTimeout),
    (KnowledgeUnavailable(SECRET_TEXT), KnowledgeUnavailable),
    (KnowledgeUnauthorized(SECRET_TEXT), KnowledgeUnauthorized),
    (KnowledgeRateLimited(SECRET_TEXT), KnowledgeRateLimited),
    (KnowledgeFiltersUnsupported(SECRET_TEXT), KnowledgeFiltersUnsupported),
]


@pytest.mark.clause("runtime.errors", "errors")
@pytest.mark.parametrize("moment", ["awaited", "called"])
@pytest.mark.parametrize(("raised", "expected"), RAISED, ids=[type(raised).__name__ for raised, _ in RAISED])
def test_nothing_of_what_a_provider_raises_leaves_the_runtime(run, caplog, moment, raised, expected):
    provider = Raising(raised)
    if moment == "called":

        def retrieve(request, context):
            raise raised

        provider.retrieve = retrieve
    caplog.set_level(logging.DEBUG)
    error = run(failure(KnowledgeRuntime(provider), trace_id="trace-7"))
    assert type(error) is expected
    shows_no_secret(error, caplog)
    assert "trace-7" in caplog.text
    assert "stand-in" in caplog.text


@pytest.mark.clause("runtime.errors")
def test_the_operators_log_says_what_failed_with_secrets_redacted(run, caplog):
    run(failure(KnowledgeRuntime(Raising(VendorError()))))
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.name == "qak_core"
    for part in ("VendorError", "request to [redacted] failed: password=[redacted]"):
        assert part in record.getMessage()


# Deadline and cancellation


@pytest.mark.clause("runtime.deadline")
@pytest.mark.parametrize("deaf", [False, True])
def test_a_slow_provider_is_cut_off_at_the_deadline_whether_it_listens_or_not(run, deaf):
    async def scenario():
        provider = Patient(deaf=deaf)
        error = await failure(KnowledgeRuntime(provider, timeout_s=0.05))
        assert type(error) is KnowledgeTimeout
        shows_no_secret(error)
        assert provider.calls[0][1].signal.cancelled
        provider.released.set()
        await until(lambda: provider.ended)
        assert provider.ended == (["answered"] if deaf else [asyncio.CancelledError])

    run(scenario())


@pytest.mark.clause("runtime.deadline", "runtime.errors")
@pytest.mark.parametrize(
    "error", [None, VendorError(), NoException(), KnowledgeFailed(SECRET_TEXT)], ids=lambda error: type(error).__name__
)
def test_what_a_deaf_provider_says_too_late_is_swallowed(run, caplog, error):
    caplog.set_level(logging.DEBUG)

    async def scenario():
        provider = Patient(deaf=True, error=error)
        runtime = KnowledgeRuntime(provider, timeout_s=0.02)
        assert type(await failure(runtime)) is KnowledgeTimeout
        provider.released.set()
        await until(lambda: "given up" in caplog.text)

    run(scenario())
    assert [secret for secret in SECRETS if secret in caplog.text] == []


@pytest.mark.clause("runtime.deadline", "context.signal")
@pytest.mark.parametrize("response", [[], [RESULT], None], ids=["empty", "partial", "none"])
@pytest.mark.parametrize("cancel", [False, True], ids=["deadline", "cancelled"])
def test_a_provider_that_stops_when_told_to_has_not_found_nothing(run, response, cancel):
    class Obedient(Patient):
        async def retrieve(self, request, context):
            self.started.set()
            await context.signal.wait()
            return response

    async def scenario():
        provider, signal = Obedient(), CancelSignal()
        runtime = KnowledgeRuntime(provider, timeout_s=60 if cancel else 0.02)
        search = asyncio.ensure_future(failure(runtime, signal=signal))
        await provider.started.wait()
        if cancel:
            signal.cancel()
        assert type(await search) is (KnowledgeCancelled if cancel else KnowledgeTimeout)

    run(scenario())


@pytest.mark.clause("runtime.deadline", "context.signal")
def test_a_provider_that_blocks_in_a_thread_sees_the_deadline_there(run):
    class Threaded(Provider):
        def __init__(self):
            super().__init__()
            self.seen = threading.Event()

        async def retrieve(self, request, context):
            def work():
                while context.signal.remaining() > 0:
                    self.seen.wait(0.001)
                self.seen.set()

            return await asyncio.to_thread(work)

    async def scenario():
        provider = Threaded()
        assert type(await failure(KnowledgeRuntime(provider, timeout_s=0.05))) is KnowledgeTimeout
        await until(provider.seen.is_set)

    run(scenario())


@pytest.mark.clause("runtime.deadline")
def test_a_callers_shorter_deadline_counts(run):
    async def scenario():
        provider = Patient()
        runtime = KnowledgeRuntime(provider, timeout_s=600)
        assert type(await failure(runtime, signal=CancelSignal(0.02))) is KnowledgeTimeout

    run(scenario())


@pytest.mark.clause("runtime.deadline")
@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("where", ["loop", "thread"])
def test_a_cancelled_search_ends_at_once_with_its_own_error(run, deaf, where):
    async def scenario():
        provider, signal = Patient(deaf=deaf), CancelSignal(600)
        search = asyncio.ensure_future(failure(KnowledgeRuntime(provider), signal=signal))
        await provider.started.wait()
        if where == "loop":
            signal.cancel()
        else:
            threading.Thread(target=signal.cancel).start()
        assert type(await search) is KnowledgeCancelled
        provider.released.set()
        await until(lambda: provider.ended)

    run(scenario())


@pytest.mark.clause("runtime.deadline")
@pytest.mark.parametrize(
    ("signal", "expected"), [(CancelSignal(0), KnowledgeTimeout), (CancelSignal(), KnowledgeCancelled)]
)
def test_a_signal_that_has_ended_never_calls_the_provider(run, signal, expected):
    if expected is KnowledgeCancelled:
        signal.cancel()
    provider = Provider()
    assert type(run(failure(KnowledgeRuntime(provider), signal=signal))) is expected
    assert provider.calls == []


@pytest.mark.clause("runtime.deadline")
@pytest.mark.parametrize("deaf", [False, True])
def test_cancelling_the_task_that_searches_cancels_the_provider(run, deaf):
    async def scenario():
        provider = Patient(deaf=deaf)
        runtime = KnowledgeRuntime(provider)
        search = asyncio.ensure_future(runtime.search("q", owner_id="o"))
        await provider.started.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert provider.calls[0][1].signal.cancelled
        provider.released.set()
        await until(lambda: provider.ended)

    run(scenario())


@pytest.mark.clause("runtime.deadline", "runtime.errors")
def test_a_provider_that_listens_badly_to_its_signal_harms_nobody(run, caplog):
    class Listening(Patient):
        async def retrieve(self, request, context):
            context.signal.on_cancel(self.fail)
            return await super().retrieve(request, context)

        def fail(self):
            raise VendorError

    async def scenario():
        provider = Listening()
        runtime = KnowledgeRuntime(provider, timeout_s=0.02)
        assert type(await failure(runtime)) is KnowledgeTimeout
        await until(lambda: provider.ended)
        signal, other = CancelSignal(), Listening()
        search = asyncio.ensure_future(failure(KnowledgeRuntime(other), signal=signal))
        await other.started.wait()
        signal.cancel()
        assert type(await search) is KnowledgeCancelled

    run(scenario())
    assert [secret for secret in SECRETS if secret in caplog.text] == []


@pytest.mark.clause("context.signal")
def test_a_callers_signal_keeps_nothing_of_the_searches_it_outlives(run):
    class Weak(Provider):
        async def retrieve(self, request, context):
            self.gone = weakref.ref(request_token := Token())
            context.signal.on_cancel(request_token.hear)
            return [RESULT]

    class Token:
        def hear(self):
            raise AssertionError("the search was over")

    async def scenario():
        provider, signal = Weak(), CancelSignal()
        await KnowledgeRuntime(provider).search("q", owner_id="o", signal=signal)
        await asyncio.sleep(0)  # the task that waited for the signal ends
        gc.collect()
        assert provider.gone() is None
        signal.cancel()

    run(scenario())


# The soft deadline


@pytest.mark.clause("runtime.soft_deadline")
def test_a_host_is_told_once_when_a_search_is_slow(run):
    async def scenario():
        provider, told = Patient(), []
        runtime = KnowledgeRuntime(provider, soft_deadline_s=0.01, on_slow=told.append)
        search = asyncio.ensure_future(runtime.search("q", owner_id="o", turn_id="t"))
        await until(lambda: told)
        await asyncio.sleep(0.03)
        provider.released.set()
        assert (await search).status == "ok"
        assert [context.turn_id for context in told] == ["t"]

    run(scenario())


@pytest.mark.clause("runtime.soft_deadline")
def test_a_host_is_not_told_of_a_search_that_is_over(run):
    async def scenario():
        told = []
        runtime = KnowledgeRuntime(Raising(None, VendorError()), soft_deadline_s=0.2, on_slow=told.append)
        await runtime.search("q", owner_id="o")
        await failure(runtime)
        await failure(runtime, signal=CancelSignal(0))
        await asyncio.sleep(0.3)
        assert told == []

    run(scenario())


@pytest.mark.clause("runtime.soft_deadline")
def test_a_callback_that_raises_does_not_harm_the_search():
    reported = []

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        provider = Patient()

        def on_slow(context):
            provider.released.set()
            raise RuntimeError("the host's own")

        return await KnowledgeRuntime(provider, soft_deadline_s=0.01, on_slow=on_slow).search("q", owner_id="o")

    assert asyncio.run(scenario()).status == "ok"
    assert len(reported) <= 1


# In flight


@pytest.mark.clause("runtime.in_flight")
@pytest.mark.parametrize("bound", [{"max_in_flight": 3}, {"max_in_flight_per_owner": 3}], ids=["total", "owner"])
@pytest.mark.parametrize("deaf", [False, True])
def test_searches_in_flight_are_bounded_and_deaf_ones_count_until_they_end(run, bound, deaf):
    async def scenario():
        provider = Patient(deaf=deaf)
        runtime = KnowledgeRuntime(provider, timeout_s=0.05 if deaf else 60, **bound)
        searches = [asyncio.ensure_future(runtime.search("q", owner_id="o")) for _ in range(3)]
        await until(lambda: provider.running == 3)
        if deaf:
            outcomes = await asyncio.gather(*searches, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [KnowledgeTimeout] * 3
        error = await failure(runtime)
        assert type(error) is KnowledgeBusy
        assert error.retryable
        assert len(provider.calls) == 3
        provider.released.set()
        await until(lambda: provider.running == 0)
        await asyncio.gather(*searches, return_exceptions=True)
        assert (await runtime.search("q", owner_id="o")).status == "ok"

    run(scenario())


@pytest.mark.clause("runtime.in_flight")
def test_one_owner_cannot_take_the_places_of_another(run):
    async def scenario():
        provider = Patient()
        runtime = KnowledgeRuntime(provider, max_in_flight=3, max_in_flight_per_owner=2)
        searches = [asyncio.ensure_future(runtime.search("q", owner_id=owner)) for owner in ("a", "a", "b")]
        await until(lambda: provider.running == 3)
        assert [type(await failure(runtime, owner_id=owner)) for owner in ("a", "c")] == [KnowledgeBusy] * 2
        provider.released.set()
        await asyncio.gather(*searches)
        for owner in ("a", "b", "c"):
            await runtime.search("q", owner_id=owner)

    run(scenario())


@pytest.mark.clause("runtime.in_flight")
@pytest.mark.parametrize(
    "error",
    [VendorError(), KnowledgeTimeout(), asyncio.CancelledError(), NoException()],
    ids=lambda it: type(it).__name__,
)
def test_a_place_is_given_back_however_a_search_ends(run, error):
    async def scenario():
        runtime = KnowledgeRuntime(Raising(*[error] * 5, None), max_in_flight=1)
        for _ in range(5):
            assert type(await failure(runtime)) is not KnowledgeBusy
        await runtime.search("q", owner_id="o")
        await failure(runtime, signal=CancelSignal(0))
        await runtime.search("q", owner_id="o")

    run(scenario())


# The breaker


@pytest.fixture
def clock(monkeypatch):
    """The breaker's own clock, moved by the test."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("qak_core._admission.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.mark.clause("runtime.breaker")
def test_a_provider_that_keeps_failing_is_skipped_then_probed_once(run, clock):
    async def scenario():
        provider = Raising(*[VendorError()] * 4, None)
        runtime = KnowledgeRuntime(provider, breaker_failures=3, breaker_cooldown_s=30)
        assert [type(await failure(runtime)) for _ in range(3)] == [KnowledgeFailed] * 3
        clock.now += 29.9
        assert [type(await failure(runtime)) for _ in range(5)] == [KnowledgeUnavailable] * 5
        assert len(provider.calls) == 3
        clock.now += 0.2
        assert type(await failure(runtime)) is KnowledgeFailed  # the probe
        assert type(await failure(runtime)) is KnowledgeUnavailable
        assert len(provider.calls) == 4
        clock.now += 30.1
        assert (await runtime.search("q", owner_id="o")).status == "ok"
        assert (await runtime.search("q", owner_id="o")).status == "ok"

    run(scenario())


@pytest.mark.clause("runtime.breaker")
def test_only_one_probe_is_under_way_at_a_time(run, clock):
    class FirstFails(Patient):
        async def retrieve(self, request, context):
            if not self.calls:
                self.calls.append((request, context))
                raise VendorError
            return await super().retrieve(request, context)

    async def scenario():
        provider = FirstFails()
        runtime = KnowledgeRuntime(provider, breaker_failures=1, breaker_cooldown_s=30)
        assert type(await failure(runtime)) is KnowledgeFailed
        clock.now += 31
        probe = asyncio.ensure_future(runtime.search("q", owner_id="o"))
        await provider.started.wait()
        assert [type(await failure(runtime)) for _ in range(3)] == [KnowledgeUnavailable] * 3
        provider.released.set()
        assert (await probe).status == "ok"
        assert (await runtime.search("q", owner_id="o")).status == "ok"

    run(scenario())


@pytest.mark.clause("runtime.breaker")
@pytest.mark.parametrize("bound", [{"max_in_flight": 1}, {"max_in_flight_per_owner": 1}], ids=["total", "owner"])
def test_a_probe_that_finds_no_place_is_not_used_up(run, clock, bound):
    async def scenario():
        provider = Patient(deaf=True)
        runtime = KnowledgeRuntime(provider, timeout_s=0.02, breaker_failures=1, breaker_cooldown_s=30, **bound)
        assert type(await failure(runtime)) is KnowledgeTimeout
        clock.now += 31
        assert type(await failure(runtime)) is KnowledgeBusy
        provider.released.set()
        await until(lambda: provider.running == 0)
        assert (await runtime.search("q", owner_id="o")).status == "ok"

    run(scenario())


@pytest.mark.clause("runtime.breaker")
@pytest.mark.parametrize(
    ("errors", "skipped"),
    [
        ([KnowledgeTimeout(), VendorError(), KnowledgeRateLimited()], True),
        ([KnowledgeUnavailable(), KnowledgeUnauthorized(), KnowledgeInvalidResponse()], True),
        ([VendorError(), VendorError(), None, VendorError(), VendorError()], False),
        ([KnowledgeFiltersUnsupported()] * 5, False),
        ([KnowledgeInvalidRequest(), KnowledgeBaseUnknown()] * 3, False),
    ],
    ids=["vendor", "system", "recovered", "filters", "request"],
)
def test_only_consecutive_faults_of_the_provider_count(run, clock, errors, skipped):
    async def scenario():
        provider = Raising(*errors, None)
        runtime = KnowledgeRuntime(provider, breaker_failures=3)
        for error in errors:
            await (failure(runtime) if error else runtime.search("q", owner_id="o"))
        called = len(provider.calls)
        outcome = (await asyncio.gather(runtime.search("q", owner_id="o"), return_exceptions=True))[0]
        assert isinstance(outcome, KnowledgeUnavailable) is skipped
        assert len(provider.calls) == called + (not skipped)

    run(scenario())


@pytest.mark.clause("runtime.breaker")
@pytest.mark.parametrize("deadline_s", [None, 0.01], ids=["cancelled", "impatient"])
def test_a_caller_who_gives_up_does_not_count_against_the_provider(run, clock, deadline_s):
    async def scenario():
        provider = Patient()
        runtime = KnowledgeRuntime(provider, breaker_failures=1)
        for _ in range(3):
            signal = CancelSignal(deadline_s)
            provider.started.clear()
            search = asyncio.ensure_future(failure(runtime, signal=signal))
            await provider.started.wait()
            if deadline_s is None:
                signal.cancel()
            assert type(await search) is (KnowledgeTimeout if deadline_s else KnowledgeCancelled)
        provider.released.set()
        assert (await runtime.search("q", owner_id="o")).status == "ok"

    run(scenario())


@pytest.mark.clause("runtime.breaker")
def test_an_unreadable_answer_counts_and_not_found_does_not(run, clock):
    async def scenario():
        for response, skipped in ((None, True), ([], False)):
            runtime = KnowledgeRuntime(provider := Provider(response), breaker_failures=2)
            await asyncio.gather(*(runtime.search("q", owner_id="o") for _ in range(2)), return_exceptions=True)
            provider.response = [RESULT]
            [outcome] = await asyncio.gather(runtime.search("q", owner_id="o"), return_exceptions=True)
            assert (type(outcome) is KnowledgeUnavailable) is skipped

    run(scenario())


@pytest.mark.clause("runtime.breaker")
def test_the_breaker_is_off_unless_asked_for(run):
    async def scenario():
        runtime = KnowledgeRuntime(Raising(VendorError()))
        assert {type(await failure(runtime)) for _ in range(50)} == {KnowledgeFailed}

    run(scenario())


# Closing


class Closing(Patient):
    """Counts its closings, and closes slowly, never or with an error."""

    def __init__(self, outcome="closed", **fields):
        super().__init__(**fields)
        self.outcome = outcome
        self.closed = []

    async def close(self):
        self.closed.append(self.running)
        if self.outcome == "deaf":
            while not self.released.is_set():
                try:
                    await self.released.wait()
                except asyncio.CancelledError:
                    continue
        if self.outcome == "error":
            raise VendorError
        await asyncio.sleep(0)


@pytest.mark.clause("close.once")
@pytest.mark.parametrize("outcome", ["closed", "error", "deaf"])
def test_a_provider_is_closed_once_however_often_and_however_it_ends(run, outcome, caplog):
    async def scenario():
        provider = Closing(outcome)
        runtime = KnowledgeRuntime(provider, close_timeout_s=0.05)
        await asyncio.gather(*(runtime.close() for _ in range(5)))
        await runtime.close()
        async with runtime:
            pass
        assert provider.closed == [0]
        assert type(await failure(runtime)) is KnowledgeClosed
        assert (await runtime.health()).status == "unavailable"
        assert provider.calls == []
        provider.released.set()

    run(scenario())
    assert [secret for secret in SECRETS if secret in caplog.text] == []


@pytest.mark.clause("close.once")
@pytest.mark.parametrize("deaf", [False, True])
def test_searches_in_flight_are_cancelled_before_the_provider_is_closed(run, deaf):
    async def scenario():
        provider = Closing(deaf=deaf)
        runtime = KnowledgeRuntime(provider, close_timeout_s=0.05)
        searches = [asyncio.ensure_future(failure(runtime)) for _ in range(3)]
        await until(lambda: provider.running == 3)
        await runtime.close()
        assert provider.closed == [3 if deaf else 0]
        assert [type(await search) for search in searches] == [KnowledgeCancelled] * 3
        provider.released.set()
        await until(lambda: provider.running == 0)

    run(scenario())


@pytest.mark.clause("close.once")
def test_closing_goes_on_when_one_of_those_who_wait_for_it_gives_up(run):
    async def scenario():
        provider = Closing("deaf")
        runtime = KnowledgeRuntime(provider, close_timeout_s=60)
        first = asyncio.ensure_future(runtime.close())
        await until(lambda: provider.closed)
        first.cancel()
        await asyncio.wait({first})
        assert type(await failure(runtime)) is KnowledgeClosed
        provider.released.set()
        await runtime.close()
        assert provider.closed == [0]

    run(scenario())


@pytest.mark.clause("close.once")
def test_a_provider_without_close_is_closed_all_the_same(run):
    async def scenario():
        async with KnowledgeRuntime(Provider()) as runtime:
            await runtime.search("q", owner_id="o")
        assert type(await failure(runtime)) is KnowledgeClosed

    run(scenario())


# Health


def with_health(health):
    provider = Provider()
    provider.health = health
    return provider


@pytest.mark.clause("health.states")
def test_a_provider_without_a_health_check_is_ready(run):
    assert run(KnowledgeRuntime(Provider()).health()) == ProviderHealth(status="ready")


@pytest.mark.clause("health.states")
@pytest.mark.parametrize("status", ["ready", "unconfigured", "degraded", "unavailable"])
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_health_check_gives_its_state(run, status, kind):
    async def health():
        return {"status": status, "message": "see http://10.0.0.1/"}

    check = health if kind == "async" else lambda: ProviderHealth(status=status, message="see http://10.0.0.1/")
    assert run(KnowledgeRuntime(with_health(check)).health()) == ProviderHealth(status=status, message="see [redacted]")


@pytest.mark.clause("health.states")
def test_a_health_check_may_take_the_signal_with_its_deadline(run):
    async def health(signal):
        return {"status": "ready" if 0 < signal.remaining() <= 60 else "degraded"}

    assert run(KnowledgeRuntime(with_health(health), health_timeout_s=60).health()).status == "ready"


@pytest.mark.clause("health.states")
def test_a_health_checks_own_options_are_left_alone(run):
    async def health(deep=False, *more, slow=False):
        return {"status": "degraded" if deep or more or slow else "ready"}

    assert run(KnowledgeRuntime(with_health(health)).health()).status == "ready"


def answers(value):
    async def health():
        return value

    return health


def raises(error):
    async def health():
        raise error

    return health


@pytest.mark.clause("health.states", "runtime.errors")
@pytest.mark.parametrize(
    "health",
    [
        *[
            raises(error)
            for error in (
                VendorError(),
                BadText(),
                NoException(),
                asyncio.CancelledError(),
                KnowledgeTimeout(SECRET_TEXT),
            )
        ],
        *map(answers, (None, True, "ready", {}, {"status": "fine"}, {"status": hostile.Opaque()})),
        *map(
            answers, (hostile.Opaque(), hostile.RaisingDict(status="ready"), hostile.PanickingMapping(status="ready"))
        ),
        lambda: [][0],
    ],
)
def test_a_health_check_that_fails_is_unavailable_with_a_safe_message(run, caplog, health):
    found = run(KnowledgeRuntime(with_health(health)).health())
    assert found.status == "unavailable"
    assert found.message
    assert [secret for secret in SECRETS if secret in found.message + caplog.text] == []


@pytest.mark.clause("health.states")
@pytest.mark.parametrize("deaf", [False, True])
def test_a_health_check_that_hangs_is_unavailable(run, deaf):
    async def scenario():
        provider = Patient(deaf=deaf)
        provider.health = lambda: provider.retrieve(None, None)
        runtime = KnowledgeRuntime(provider, health_timeout_s=0.02)
        assert (await runtime.health()).status == "unavailable"
        provider.released.set()
        await until(lambda: provider.ended)
        assert (await runtime.search("q", owner_id="o")).status == "ok"

    run(scenario())


@pytest.mark.clause("health.states")
def test_health_checks_do_not_pile_up_behind_a_deaf_one(run):
    async def scenario():
        provider = Patient(deaf=True)
        provider.health = lambda: provider.retrieve(None, None)
        runtime = KnowledgeRuntime(provider, health_timeout_s=0.02)
        assert [(await runtime.health()).status for _ in range(5)] == ["unavailable"] * 5
        assert provider.running == 1
        provider.released.set()
        await until(lambda: provider.running == 0)

    run(scenario())


# Many at once


@pytest.mark.clause("runtime.in_flight", "runtime.turn_citations")
def test_many_searches_run_at_once_each_with_its_own_answer(run):
    class Echo(Provider):
        async def retrieve(self, request, context):
            await asyncio.sleep(0)
            return [
                {"id": context.owner_id, "content": request.query, "url": f"https://example.com/{context.owner_id}"}
            ]

    async def scenario():
        runtime = KnowledgeRuntime(Echo())
        answers = await asyncio.gather(*(runtime.search(f"q{n}", owner_id=f"o{n}", turn_id="t") for n in range(50)))
        for number, answer in enumerate(answers):
            assert [(result.id, result.content) for result in answer.results] == [(f"o{number}", f"q{number}")]
            assert [(cited.id, cited.url) for cited in answer.citations] == [
                ("source_1", f"https://example.com/o{number}")
            ]

    run(scenario())

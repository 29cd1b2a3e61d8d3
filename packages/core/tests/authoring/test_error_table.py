import asyncio
from concurrent.futures import CancelledError as FutureCancelled

import pytest

from qak_core import (
    KnowledgeCancelled,
    KnowledgeError,
    KnowledgeFailed,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)
from qak_core.authoring import ErrorTable, VendorErrors

pytestmark = pytest.mark.clause("errors")


class VendorError(Exception):
    pass


class RateLimit(VendorError):
    pass


class DailyRateLimit(RateLimit):
    pass


def named(module, name, base=Exception):
    return type(name, (base,), {"__module__": module})


@pytest.mark.parametrize(
    ("table", "error", "expected"),
    [
        ({VendorError: KnowledgeUnavailable}, VendorError("x"), KnowledgeUnavailable),
        ({VendorError: KnowledgeUnavailable}, DailyRateLimit("x"), KnowledgeUnavailable),
        (
            {VendorError: KnowledgeUnavailable, RateLimit: KnowledgeRateLimited},
            DailyRateLimit("x"),
            KnowledgeRateLimited,
        ),
        ({RateLimit: KnowledgeRateLimited, VendorError: KnowledgeUnavailable}, VendorError("x"), KnowledgeUnavailable),
        (
            {"openai.AuthenticationError": KnowledgeUnauthorized},
            named("openai", "AuthenticationError")("x"),
            KnowledgeUnauthorized,
        ),
        (
            {"openai.APIError": KnowledgeUnavailable},
            named("other", "E", named("openai", "APIError"))("x"),
            KnowledgeUnavailable,
        ),
        ({"openai.APIError": KnowledgeUnavailable}, named("other", "APIError")("x"), KnowledgeFailed),
        ({}, TimeoutError("x"), KnowledgeTimeout),
        ({}, ConnectionResetError("x"), KnowledgeUnavailable),
        ({TimeoutError: KnowledgeUnavailable}, TimeoutError("x"), KnowledgeUnavailable),
        ({}, KeyError("x"), KnowledgeFailed),
        ({VendorError: KnowledgeUnavailable}, ExceptionGroup("x", [VendorError()]), KnowledgeFailed),
    ],
)
def test_the_most_derived_class_in_the_table_decides(table, error, expected):
    translated = ErrorTable(table).translate(error)
    assert type(translated) is expected
    assert translated.args == (expected.text,)


def test_what_is_not_in_the_table_has_a_default():
    assert type(ErrorTable({}, default=KnowledgeUnavailable).translate(KeyError("x"))) is KnowledgeUnavailable


@pytest.mark.clause("runtime.errors")
def test_what_leaves_a_guard_holds_nothing_of_the_vendors_error_whose_class_is_logged(run, caplog):
    async def call():
        try:
            raise OSError("inner hunter2")
        except OSError as error:
            raise VendorError("password=hunter2") from error

    async def scenario():
        with pytest.raises(KnowledgeUnavailable) as caught:
            await ErrorTable({VendorError: KnowledgeUnavailable}).guard(call())
        return caught.value

    error = run(scenario())
    assert caplog.messages == [f"knowledge_unavailable stands for {__name__}.VendorError"]
    assert error.args == (KnowledgeUnavailable.text,)
    assert error.__cause__ is None
    assert error.__context__ is None
    frame = error.__traceback__
    while frame is not None:
        if "error_table" in frame.tb_frame.f_code.co_filename:
            assert "hunter2" not in repr(frame.tb_frame.f_locals)
        frame = frame.tb_next


@pytest.mark.parametrize(
    "error", [KnowledgeInvalidRequest("own text"), KnowledgeCancelled()], ids=lambda it: type(it).__name__
)
def test_a_guard_lets_our_own_errors_through(run, error):
    async def call():
        raise error

    async def scenario():
        with pytest.raises(type(error)) as caught:
            await ErrorTable({}).guard(call())
        assert caught.value is error

    run(scenario())


def test_a_guard_gives_the_value_of_the_call(run):
    async def call():
        return 5

    assert run(ErrorTable({}).guard(call())) == 5


def test_a_guard_passes_a_cancellation_of_its_task_on(run):
    async def scenario():
        task = asyncio.ensure_future(ErrorTable({}).guard(asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(scenario())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_guard_leaves_the_end_of_the_process_alone(error):
    async def call():
        raise error

    with pytest.raises(error):
        ErrorTable({}).guard(call()).send(None)


def test_translation_gives_a_fresh_error_each_time():
    table = ErrorTable({})
    first, second = table.translate(KeyError()), table.translate(KeyError())
    assert first is not second
    assert isinstance(first, KnowledgeError)


class Trap(Exception):
    """An error of a client whose attributes raise when they are read."""

    @property
    def status_code(self):
        raise RuntimeError("password=hunter2a")


@pytest.mark.clause("runtime.errors")
@pytest.mark.parametrize("error", [Trap("secret"), asyncio.CancelledError("secret"), FutureCancelled("secret")])
def test_guard_lets_nothing_out_of_an_error_that_misleads_it(error):
    async def scenario():
        async def call():
            raise error

        with pytest.raises(KnowledgeError) as caught:
            await VendorErrors().guard(call())
        return caught.value

    left = asyncio.run(scenario())
    assert type(left) is KnowledgeUnavailable
    assert left.__cause__ is None
    assert left.__context__ is None


@pytest.mark.clause("runtime.deadline")
def test_guard_passes_the_cancellation_of_its_own_task():
    async def scenario():
        started = asyncio.Event()

        async def call():
            started.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(ErrorTable({}).guard(call()))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(scenario())

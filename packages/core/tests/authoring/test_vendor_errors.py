import asyncio
import logging

import pytest

from qak_core import (
    KnowledgeBusy,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)
from qak_core.authoring import VendorErrors

pytestmark = pytest.mark.clause("errors")

SECRET = "sk-planted-0123456789abcdef"


def foreign(name, base=Exception, **fields):
    error = type(name, (base,), {"__module__": "vendor.client"})(SECRET)
    for key, value in fields.items():
        setattr(error, key, value)
    return error


def caused(cause, error=None):
    error = error or RuntimeError(SECRET)
    error.__cause__ = cause
    return error


class Response:
    def __init__(self, status_code):
        self.status_code = status_code


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, KnowledgeUnauthorized) for status in (401, 403)),
        *((status, KnowledgeTimeout) for status in (408, 504)),
        *((status, KnowledgeInvalidRequest) for status in (400, 404, 409, 413, 422)),
        (429, KnowledgeRateLimited),
        *((status, KnowledgeUnavailable) for status in (200, 418, 500, 502, 503, "401", True, 401.0, None)),
    ],
)
def test_http_status_decides_wherever_the_client_keeps_it(status, kind):
    for error in (foreign("Odd", status_code=status), foreign("Odd", response=Response(status))):
        assert type(VendorErrors().translate(error)) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("APITimeoutError", KnowledgeTimeout),
        ("DeadlineExceeded", KnowledgeTimeout),
        ("AuthenticationError", KnowledgeUnauthorized),
        ("PermissionDenied", KnowledgeUnauthorized),
        ("RateLimitError", KnowledgeRateLimited),
        ("ResourceExhausted", KnowledgeRateLimited),
        ("APIConnectionError", KnowledgeUnavailable),
    ],
)
def test_name_of_a_class_or_of_its_base_decides(name, kind):
    error = foreign(name)
    assert type(VendorErrors().translate(error)) is kind
    assert type(VendorErrors().translate(foreign("Derived", type(error)))) is kind


def test_status_is_more_telling_than_a_name_and_the_table_than_both():
    error = foreign("TransportError", status_code=429)
    assert type(VendorErrors().translate(error)) is KnowledgeRateLimited
    table = VendorErrors({"vendor.client.TransportError": KnowledgeFiltersUnsupported})
    assert type(table.translate(error)) is KnowledgeFiltersUnsupported


def test_members_of_a_group_and_causes_are_looked_at():
    limited = foreign("RateLimitError")
    for error in (
        caused(limited),
        caused(caused(limited)),
        ExceptionGroup(SECRET, [ValueError(SECRET), limited]),
        caused(ExceptionGroup(SECRET, [limited])),
        caused(KnowledgeRateLimited()),
    ):
        assert type(VendorErrors().translate(error)) is KnowledgeRateLimited
    assert type(VendorErrors().translate(caused(limited, TimeoutError()))) is KnowledgeTimeout


def test_wrapper_is_asked_only_where_it_has_no_cause():
    errors = VendorErrors({"vendor.client.Wrapped": KnowledgeInvalidRequest}, wrappers=["Wrapped"])
    assert type(errors.translate(foreign("Wrapped"))) is KnowledgeInvalidRequest
    assert type(errors.translate(caused(KnowledgeBusy(), foreign("Wrapped")))) is KnowledgeBusy
    assert type(errors.translate(caused(RuntimeError(), foreign("Wrapped")))) is KnowledgeUnavailable


def test_chain_of_causes_that_has_no_end_is_left_after_a_few():
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert type(VendorErrors().translate(one)) is KnowledgeUnavailable


def test_guard_logs_the_class_and_nothing_of_the_error_gets_out(caplog):
    async def fail():
        raise foreign("Odd", status_code=503)

    with caplog.at_level(logging.DEBUG), pytest.raises(KnowledgeUnavailable) as caught:
        asyncio.run(VendorErrors().guard(fail()))
    error = caught.value
    assert "vendor.client.Odd" in caplog.text
    assert error.__cause__ is error.__context__ is None
    assert SECRET not in f"{caplog.text} {error!r} {error} {error.args} {vars(error)}"

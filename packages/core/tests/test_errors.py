import pickle

import pytest

from qak_core import (
    AdapterConflict,
    AdapterLoadError,
    AdapterNotFound,
    CompositionError,
    KnowledgeError,
    KnowledgeFailed,
    ProviderContractError,
    QakError,
    SettingsError,
)
from qak_core._texts import ERROR_TEXTS_ZH
from qak_core.errors import ERRORS_BY_CODE

pytestmark = pytest.mark.clause("errors")

RETRYABLE = {
    "knowledge_query_required": False,
    "knowledge_owner_required": False,
    "knowledge_base_unknown": False,
    "knowledge_filters_unsupported": False,
    "knowledge_invalid_request": False,
    "knowledge_unconfigured": False,
    "knowledge_unavailable": True,
    "knowledge_unauthorized": False,
    "knowledge_rate_limited": True,
    "knowledge_timeout": True,
    "knowledge_cancelled": False,
    "knowledge_busy": True,
    "knowledge_closed": False,
    "knowledge_invalid_response": False,
    "knowledge_failed": True,
}


def test_the_list_of_codes_is_closed():
    assert {code: error.retryable for code, error in ERRORS_BY_CODE.items()} == RETRYABLE


@pytest.mark.parametrize("code", RETRYABLE)
def test_an_error_has_its_code_a_fixed_text_and_whether_to_retry(code):
    error = ERRORS_BY_CODE[code]()
    assert isinstance(error, KnowledgeError)
    assert error.code == code
    assert str(error) == error.message == error.text
    assert error.to_dict() == {"status": "error", "code": code, "message": error.text, "retryable": RETRYABLE[code]}


@pytest.mark.parametrize("code", RETRYABLE)
def test_an_error_has_a_text_in_both_languages(code):
    texts = {error.text for error in ERRORS_BY_CODE.values()}
    assert len(texts) == len(RETRYABLE)
    assert any("\u4e00" <= char <= "\u9fff" for char in ERROR_TEXTS_ZH[code])
    assert set(ERROR_TEXTS_ZH) == set(RETRYABLE)


def test_a_text_of_the_callers_own_never_reaches_the_envelope():
    error = KnowledgeFailed("connect to http://10.0.0.1/ failed")
    assert error.message == "connect to http://10.0.0.1/ failed"
    assert "10.0.0.1" not in str(error.to_dict())


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(ERRORS_BY_CODE["knowledge_timeout"]()))
    assert error.to_dict()["code"] == "knowledge_timeout"


@pytest.mark.parametrize(
    "error", [ProviderContractError, SettingsError, AdapterNotFound, AdapterConflict, AdapterLoadError]
)
def test_composition_has_a_branch_of_its_own(error):
    assert issubclass(error, CompositionError)
    assert issubclass(error, QakError)
    assert not issubclass(error, KnowledgeError)


@pytest.mark.parametrize("kind", [ProviderContractError, SettingsError])
def test_a_composition_error_lists_every_problem(kind):
    error = kind(iter(["first", "second"]), subject="adapter x")
    assert error.problems == ("first", "second")
    assert str(error).startswith("adapter x ")
    assert str(error).count("\n  - ") == 2

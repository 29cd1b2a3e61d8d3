import pytest

from qak_core import AdapterNotFound, choose_provider
from qak_core.composition import LOCAL_LIBRARY_SWITCH

from ._providers import Provider

pytestmark = pytest.mark.clause("composition")

ON = {LOCAL_LIBRARY_SWITCH: "on"}


@pytest.fixture
def created(monkeypatch):
    """Note which adapter is asked for; which of them are installed is not the question here."""
    asked = []
    monkeypatch.setattr(
        "qak_core.composition.create_provider", lambda name, settings: asked.append((name, settings)) or "local one"
    )
    return asked


def test_an_injected_provider_wins_over_all(created):
    injected = Provider()
    assert choose_provider(injected, configured=lambda: pytest.fail("not to be asked"), environ=ON) is injected
    assert created == []


def test_a_configured_provider_wins_over_the_local_library(created):
    configured = Provider()
    assert choose_provider(configured=lambda: configured, environ=ON) is configured
    assert created == []


@pytest.mark.parametrize("value", ["on", " ON "])
def test_the_local_library_is_used_when_it_is_switched_on(created, value):
    assert choose_provider(environ={LOCAL_LIBRARY_SWITCH: value}) == "local one"
    assert created == [("local", {})]


@pytest.mark.clause("runtime.gate")
@pytest.mark.parametrize(
    "environ", [{}, *({LOCAL_LIBRARY_SWITCH: value} for value in ("", "off", "0", "1", "true", "only"))]
)
def test_nothing_is_chosen_without_a_choice(created, environ):
    assert choose_provider(environ=environ) is None
    assert created == []


def test_the_processes_environment_is_looked_at_last(created, monkeypatch):
    monkeypatch.setenv("QWEN_AUDIO_DOMAIN_LIBRARY", "on")
    assert choose_provider() == "local one"
    monkeypatch.delenv("QWEN_AUDIO_DOMAIN_LIBRARY")
    assert choose_provider() is None


def test_a_configured_provider_that_fails_is_not_replaced_by_another(created):
    def configured():
        raise AdapterNotFound("adapter 'x' is not installed")

    with pytest.raises(AdapterNotFound):
        choose_provider(configured=configured, environ=ON)
    assert created == []

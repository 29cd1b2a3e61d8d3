"""`qak doctor`: each step, and what to do."""

import pytest


def steps(text: str) -> dict[str, str]:
    return {line[6:20].strip(): line[:5].strip() for line in text.splitlines() if line[0] != " "}


def test_doctor_goes_through_the_whole_path(qak, configured) -> None:
    configured()
    ran = qak("doctor", "--query", "谁批准？")
    assert ran.code == 0
    assert steps(ran.out) == {"configuration": "ok", "provider": "ok", "health": "ok", "retrieval": "ok"}
    for said in ("qak.toml", "My application (my-app)", "engineering, sales", "2 results for '谁批准？'"):
        assert said in ran.out


def test_doctor_without_configuration_says_how_to_get_one(qak) -> None:
    ran = qak("doctor")
    assert ran.code == 2
    assert steps(ran.out) == {"configuration": "ok", "provider": "fail"}
    assert "QWEN_AUDIO_DOMAIN_LIBRARY=on" in ran.out


def test_doctor_of_an_unhealthy_provider_goes_on_and_fails_with_3(qak, configured) -> None:
    configured("fail")
    ran = qak("doctor")
    assert ran.code == 3
    assert steps(ran.out) == {"configuration": "ok", "provider": "ok", "health": "fail", "retrieval": "fail"}
    assert "unavailable: no route" in ran.out
    assert "knowledge_failed" in ran.out
    assert "qak doctor" not in ran.out  # which is what the person just did
    assert "hunter22" not in ran.out + ran.err


@pytest.mark.parametrize(("mode", "said"), [("nothing", "--query TEXT"), ("degraded", "no answer from: sales")])
def test_doctor_warns_of_an_answer_that_lacks_something(qak, configured, mode, said) -> None:
    configured(mode)
    ran = qak("doctor")
    assert ran.code == 0
    assert steps(ran.out)["retrieval"] == "warn"
    assert said in ran.out


def test_doctor_warns_when_the_tool_is_hidden(qak, configured) -> None:
    configured()
    assert steps(qak("doctor", QWEN_AUDIO_KNOWLEDGE_TOOL_ENABLED="off").out)["tool"] == "warn"


def test_doctor_fits_a_terminal_of_80_columns(qak_on_terminal) -> None:
    ran = qak_on_terminal("doctor", NO_COLOR="1")
    assert max(map(len, ran.out.splitlines())) <= 80 + len("\x1b[1m\x1b[0m")

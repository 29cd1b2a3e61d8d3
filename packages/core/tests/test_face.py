import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import qak_core
from qak_core import authoring

FACE = """
PROTOCOL_VERSION AdapterConflict AdapterInfo AdapterLoadError AdapterNotFound AnswerResult CancelSignal Citation
CompositionError KnowledgeAnswer KnowledgeBase KnowledgeBaseUnknown KnowledgeBusy KnowledgeCancelled KnowledgeClosed
KnowledgeError KnowledgeFailed KnowledgeFiltersUnsupported KnowledgeInvalidRequest KnowledgeInvalidResponse
KnowledgeManagementProvider KnowledgeOwnerRequired KnowledgeProvider KnowledgeQueryRequired KnowledgeRateLimited
KnowledgeRuntime KnowledgeTimeout KnowledgeTool KnowledgeUnauthorized KnowledgeUnavailable KnowledgeUnconfigured
ProviderContractError ProviderDescription ProviderHealth QakError RetrievalContext RetrievalRequest RetrievalResponse
RetrievalResult SettingsError Source assert_provider choose_provider create_provider from_wire list_adapters
load_adapter normalize_response public_url to_wire
""".split()

AUTHORING = """
SOURCE_FIELDS BlockingPool Comparison Compound ErrorTable FanOut Filter HealthCheck Lifetime Reading Scope ScoreKind
Secret VendorErrors all_of answer fan_out flatten_metadata follow interleave load_targets matches option_problems
parse_filter passage_metadata plain_text plain_value read_passages read_settings redact redact_credentials route
run_blocking stable_id target_problems unique_ids value_at
""".split()

SIGNATURES = {
    "public_url": "(value: object) -> str | None",
    "assert_provider": "(provider: object) -> ProviderDescription",
    "normalize_response": (
        "(response: object, *, query: str, top_k: int = 5, max_content_chars: int = 4000, language: Language = 'en', "
        "turn: TurnCitations | None = None) -> KnowledgeAnswer"
    ),
    "KnowledgeRuntime.search": (
        "(self, query: str, *, owner_id: str, session_id: str = '', turn_id: str = '', trace_id: str = '', "
        "top_k: int = 5, knowledge_base_ids: Sequence[str] = (), filters: Mapping[str, Any] | None = None, "
        "signal: CancelSignal | None = None) -> KnowledgeAnswer"
    ),
    "KnowledgeAnswer.to_dict": "(self) -> dict[str, Any]",
    "CancelSignal.remaining": "(self) -> float",
    "CancelSignal.raise_if_cancelled": "(self) -> None",
    "CancelSignal.wait": "(self) -> None",
    "KnowledgeTool.call": (
        "(self, arguments: Mapping[str, Any] | str, *, owner_id: str, session_id: str = '', turn_id: str = '', "
        "trace_id: str = '', signal: CancelSignal | None = None) -> dict[str, Any]"
    ),
    "list_adapters": "() -> list[AdapterInfo]",
    "load_adapter": "(name: str) -> Factory",
    "create_provider": "(name: str, settings: Mapping[str, Any] | None = None) -> Any",
    "to_wire": "(value: WireValue) -> dict[str, Any]",
    "from_wire": "(kind: type[_W], value: object) -> _W",
    "authoring.run_blocking": "(signal: CancelSignal, fn: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T",
}


def in_a_fresh_interpreter(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize(("module", "names"), [(qak_core, FACE), (authoring, AUTHORING)], ids=["qak_core", "authoring"])
def test_the_public_names_are_these_and_no_others(module, names):
    assert sorted(module.__all__) == sorted(names)
    assert all(getattr(module, name) is not None for name in names)
    public = {
        name for name, member in vars(module).items() if not name.startswith("_") and not inspect.ismodule(member)
    }
    assert public == set(names)


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize(("name", "signature"), SIGNATURES.items(), ids=SIGNATURES)
def test_a_public_signature_stays_as_it_is(name, signature):
    member = qak_core
    for part in name.split("."):
        member = getattr(member, part)
    frozen = inspect.signature(member)
    shown = str(frozen).replace("'", "").replace('"', "")
    assert shown == signature.replace("'", "")


@pytest.mark.clause("runtime.deadline")
def test_a_runtime_takes_its_bounds_by_name_and_ten_seconds_by_default():
    parameters = inspect.signature(qak_core.KnowledgeRuntime).parameters
    assert parameters["timeout_s"].default == 10.0
    assert parameters["soft_deadline_s"].default == 0.8
    assert parameters["breaker_failures"].default == 0
    assert all(parameter.kind is parameter.KEYWORD_ONLY for name, parameter in parameters.items() if name != "provider")


@pytest.mark.clause("registry.lazy")
def test_importing_the_core_loads_nothing_that_is_not_needed_yet():
    loaded = in_a_fresh_interpreter(
        "import asyncio, sys; before = set(sys.modules)\n"
        "import qak_core, qak_core.authoring; print(*sorted(set(sys.modules) - before))"
    )
    outside = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"qak_core"}
    assert outside == set()
    assert {"email", "zipfile", "importlib.metadata"}.isdisjoint(loaded)


@pytest.mark.clause("uri.public_only", "registry.lazy")
def test_the_dependencies_are_loaded_when_they_are_first_needed():
    loaded = in_a_fresh_interpreter(
        "import sys, qak_core\n"
        "qak_core.public_url('https://example.com/'); print(*{'ada_url', 'importlib_metadata'} & set(sys.modules))\n"
        "qak_core.list_adapters(); print(*{'ada_url', 'importlib_metadata'} & set(sys.modules))"
    )
    assert loaded[0] == "ada_url"
    assert sorted(loaded[1:]) == ["ada_url", "importlib_metadata"]


@pytest.mark.clause("provider.shape")
def test_importing_the_core_starts_no_thread_and_writes_no_file(tmp_path):
    assert in_a_fresh_interpreter(
        f"import os, threading; os.chdir({str(tmp_path)!r}); os.environ['HOME'] = os.getcwd()\n"
        "import qak_core, qak_core.authoring; print(threading.active_count(), len(os.listdir()))"
    ) == ["1", "0"]


@pytest.mark.clause("registry.lazy")
def test_the_package_depends_on_a_url_parser_and_on_metadata_only():
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    names = [requirement.rstrip("<>=!~.,0123456789") for requirement in project["dependencies"]]
    assert names == ["ada-url", "importlib-metadata"]
    assert "optional-dependencies" not in project


@pytest.mark.clause("provider.shape")
def test_the_package_is_typed():
    assert (Path(qak_core.__file__).parent / "py.typed").is_file()

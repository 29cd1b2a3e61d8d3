import subprocess
import sys

import pytest

from qak_core import (
    AdapterConflict,
    AdapterLoadError,
    AdapterNotFound,
    ProviderContractError,
    SettingsError,
    create_provider,
    list_adapters,
    load_adapter,
)

GROUP = "qak.providers.v1"
WORKING = """
from collections.abc import Mapping

class Provider:
    def __init__(self, settings):
        self.settings = settings

    def describe(self):
        return {"protocol_version": 1, "key": "made", "label": "Made"}

    async def retrieve(self, request, context):
        return []

def create(settings: Mapping):
    return Provider(settings)

class namespace:
    create = staticmethod(create)

not_callable = 5
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install real distributions, one folder of ``.dist-info`` and modules each, on the path of this test."""

    def install_distribution(name, entry_points="", *, modules=(), version="1.2", metadata=None, folder=None):
        site = tmp_path / (folder or name)
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" if metadata is None else metadata
        )
        if isinstance(entry_points, bytes):
            info.joinpath("entry_points.txt").write_bytes(entry_points)
        elif entry_points:
            info.joinpath("entry_points.txt").write_text(f"[{GROUP}]\n{entry_points}\n")
        for module, code in dict(modules).items():
            site.joinpath(f"{module}.py").write_text(code)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(site))
        return site

    yield install_distribution
    for name in [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def ours(*distributions):
    """Return what is listed of these distributions; others may be installed beside them."""
    return [info for info in list_adapters() if info.distribution in distributions]


@pytest.mark.clause("registry.lazy")
def test_an_adapter_is_listed_with_its_distribution_and_without_importing_it(install):
    install("Qak_Adapter.Sea", "sea = qak_test_sea:create", modules={"qak_test_sea": "raise SystemExit('imported')"})
    [info] = ours("qak-adapter-sea")
    assert (info.name, info.version, info.target, info.problem) == ("sea", "1.2", "qak_test_sea:create", "")
    assert "qak_test_sea" not in sys.modules


@pytest.mark.clause("registry.lazy")
def test_listing_imports_no_adapter_and_not_its_package(install):
    site = install("adapter-deep", "deep = qak_test_deep.inner:create")
    package = site / "qak_test_deep"
    package.mkdir()
    package.joinpath("__init__.py").write_text("raise SystemExit('imported')")
    code = (
        "import sys, qak_core\n"
        "problems = [info.problem for info in qak_core.list_adapters() if info.name == 'deep']\n"
        "print(problems, 'qak_test_deep' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(site)},
        check=False,
    )
    assert done.stdout.strip() == "[''] False", done.stderr


@pytest.mark.clause("registry.lazy")
def test_other_entry_point_groups_are_not_listed(install):
    site = install("adapter-other")
    site.joinpath("adapter_other-1.2.dist-info", "entry_points.txt").write_text(
        "[qak.providers.v2]\nx = a:b\n[console_scripts]\ny = a:b\n"
    )
    assert ours("adapter-other") == []


@pytest.mark.clause("registry.load", "registry.factory")
def test_an_adapter_is_loaded_by_name_and_gets_its_settings(install):
    install(
        "adapter-work",
        "work = qak_test_work:create\ninner = qak_test_work:namespace.create [extra]",
        modules={"qak_test_work": WORKING},
    )
    given = {"retriever": "x", "nested": {"a": 1}}
    for name in ("work", "inner"):
        provider = create_provider(name, given)
        assert provider.settings == given
        assert provider.settings is not given
    assert create_provider("work").settings == {}
    assert callable(load_adapter("work"))


@pytest.mark.clause("registry.direct")
def test_a_direct_target_needs_no_entry_point(install):
    install("not-an-adapter", modules={"qak_test_direct": WORKING})
    assert create_provider("qak_test_direct:create", {"a": 1}).settings == {"a": 1}
    assert create_provider("qak_test_direct:namespace.create").settings == {}


@pytest.mark.clause("registry.direct")
@pytest.mark.parametrize("target", ["a:", ":b", "a:b:c", "a b:c", "a;b:c", "../a:b", "a:b()", ":", "a:b\n"])
def test_a_malformed_target_is_not_imported(target):
    with pytest.raises(AdapterNotFound, match=r"package\.module:factory"):
        load_adapter(target)


@pytest.mark.clause("registry.load")
@pytest.mark.parametrize("name", "langchain llamaindex haystack openai-filesearch mcp http local".split())
def test_a_missing_adapter_of_ours_names_the_distribution_to_install(monkeypatch, name):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(AdapterNotFound, match=f"pip install qak-adapter-{name}"):
        load_adapter(name)


@pytest.mark.clause("registry.load")
def test_another_missing_adapter_is_told_what_there_is(install):
    install("adapter-sea", "sea-search = qak_test_sea:create")
    with pytest.raises(AdapterNotFound, match="did you mean 'sea-search'"):
        load_adapter("sea-serch")
    with pytest.raises(AdapterNotFound, match=r"'package\.module:factory'"):
        load_adapter("my_app")
    with pytest.raises(AdapterNotFound, match="sea-search"):
        load_adapter("")
    with pytest.raises(AdapterNotFound) as caught:
        load_adapter("x" * 10_000)
    assert len(str(caught.value)) < 2000


@pytest.mark.clause("registry.load")
def test_two_distributions_that_claim_one_name_are_both_named(install):
    install("adapter-one", "sea = qak_test_one:create", modules={"qak_test_one": WORKING})
    install("adapter-two", "sea = qak_test_two:create\nlake = qak_test_two:create", modules={"qak_test_two": WORKING})
    with pytest.raises(AdapterConflict) as caught:
        load_adapter("sea")
    listed = ours("adapter-one", "adapter-two")
    conflicts = [info for info in listed if info.name == "sea"]
    assert len(conflicts) == 2
    for text in (str(caught.value), *(info.problem for info in conflicts)):
        assert "adapter-one" in text
        assert "adapter-two" in text
    assert create_provider("lake") is not None
    assert create_provider("qak_test_one:create") is not None


@pytest.mark.clause("registry.load")
def test_one_distribution_seen_twice_on_the_path_is_no_conflict(install):
    install("adapter-twice", "twice = qak_test_far:create", folder="far", version="1.0")
    install(
        "Adapter_Twice",
        "twice = qak_test_near:create",
        folder="near",
        version="2.0",
        modules={"qak_test_near": WORKING},
    )
    [info] = ours("adapter-twice")
    assert (info.version, info.target, info.problem) == ("2.0", "qak_test_near:create", "")
    assert create_provider("twice") is not None


@pytest.mark.clause("registry.load")
@pytest.mark.parametrize(
    "broken",
    [
        {"entry_points": "a line that says nothing"},
        {"entry_points": b"[qak.providers.v1]\nb\xff = x:y\n"},
        {"entry_points": "= x:y"},
        {"entry_points": "b ="},
        {"entry_points": "b = no target !!"},
        {"entry_points": "b = x:y", "metadata": ""},
        {"entry_points": "b = x:y", "metadata": "Metadata-Version: 2.1\n"},
    ],
    ids=["line", "bytes", "no name", "no target", "no module", "empty metadata", "no name in metadata"],
)
def test_a_broken_distribution_is_reported_and_stops_nobody_else(install, broken):
    install("adapter-work", "work = qak_test_work:create", modules={"qak_test_work": WORKING})
    install("adapter-broken", **broken)
    listed = list_adapters()
    assert "work" in [info.name for info in listed]
    assert any(info.problem for info in listed)
    assert create_provider("work") is not None
    with pytest.raises(AdapterNotFound):
        load_adapter("nobody-has-this")


@pytest.mark.clause("registry.load")
def test_a_distribution_without_metadata_stops_nobody_else(install):
    install("adapter-work", "work = qak_test_work:create", modules={"qak_test_work": WORKING})
    site = install("adapter-bare", "bare = qak_test_work:create")
    site.joinpath("adapter_bare-1.2.dist-info", "METADATA").unlink()
    assert "work" in [info.name for info in list_adapters()]
    assert create_provider("work") is not None


@pytest.mark.clause("registry.load")
def test_an_adapter_whose_module_is_missing_is_listed_with_that_problem(install):
    install("adapter-gone", "gone = qak_test_nowhere.inner:create")
    [info] = ours("adapter-gone")
    assert "qak_test_nowhere" in info.problem


BROKEN_MODULES = {
    "raises": "raise RuntimeError('password=hunter2 at http://10.0.0.1/')",
    "exits": "import sys; sys.exit('password=hunter2')",
    "does not parse": "def create(:",
    "misses a vendor": "import qak_test_no_such_vendor",
    "has no factory": "x = 1",
    "has another thing": "create = 5",
    "is lazy and broken": "def __getattr__(name): raise ImportError('password=hunter2')",
    "raises without a text": "class E(Exception):\n def __str__(self): raise ValueError('password=hunter2')\nraise E",
}


@pytest.mark.clause("registry.load", "runtime.errors")
@pytest.mark.parametrize("code", BROKEN_MODULES.values(), ids=BROKEN_MODULES)
@pytest.mark.parametrize("how", ["broken", "qak_test_broken:create"])
def test_an_adapter_that_cannot_be_loaded_says_why_without_secrets(install, code, how):
    install("adapter-broken", "broken = qak_test_broken:create", modules={"qak_test_broken": code})
    with pytest.raises(AdapterLoadError) as caught:
        load_adapter(how)
    check_error(caught.value)
    assert ours("adapter-broken")[0].name == "broken"


def check_error(error):
    assert "broken" in str(error)
    assert error.__context__ is None
    assert error.__cause__ is None
    for secret in ("hunter2", "10.0.0.1"):
        assert secret not in str(error)


@pytest.mark.clause("registry.factory", "runtime.errors")
@pytest.mark.parametrize(
    "code",
    [
        "def create(settings): raise RuntimeError('password=hunter2 at http://10.0.0.1/')",
        "def create(settings): raise SystemExit('password=hunter2')",
        "def create(): ...",
        "import qak_core\ndef create(settings): raise qak_core.KnowledgeUnavailable('password=hunter2')",
    ],
)
def test_a_factory_that_fails_says_why_without_secrets(install, code):
    install("adapter-broken", "broken = qak_test_broken:create", modules={"qak_test_broken": code})
    with pytest.raises(AdapterLoadError) as caught:
        create_provider("broken", {"password": "hunter2"})
    check_error(caught.value)


@pytest.mark.clause("registry.factory", "provider.shape")
@pytest.mark.parametrize("made", ["None", "object()", "settings"])
def test_a_factory_must_make_a_provider(install, made):
    install(
        "adapter-odd", "odd = qak_test_odd:create", modules={"qak_test_odd": f"def create(settings): return {made}"}
    )
    with pytest.raises(ProviderContractError) as caught:
        create_provider("odd")
    assert len(caught.value.problems) >= 2


@pytest.mark.clause("registry.factory")
def test_a_factorys_own_settings_error_arrives_as_it_is(install):
    code = (
        "from qak_core import SettingsError\ndef create(settings): raise SettingsError(['a', 'b'], subject='adapter x')"
    )
    install("adapter-settings", "settings = qak_test_settings:create", modules={"qak_test_settings": code})
    with pytest.raises(SettingsError) as caught:
        create_provider("settings")
    assert caught.value.problems == ("a", "b")


@pytest.mark.clause("registry.load")
def test_what_is_installed_later_is_found_and_what_is_gone_is_not(install, monkeypatch):
    assert ours("adapter-late") == []
    site = install("adapter-late", "late = qak_test_late:create")
    assert len(ours("adapter-late")) == 1
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(site)])
    assert ours("adapter-late") == []


@pytest.mark.clause("registry.direct")
def test_a_provider_class_can_be_its_own_factory(install):
    install("a-class", modules={"qak_test_class": WORKING})
    assert create_provider("qak_test_class:Provider", {"a": 1}).settings == {"a": 1}

"""The shape of the workspace: who may import whom, and that each package has the same rooms."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
IDS = [package.name for package in PACKAGES]
ADAPTERS = [package for package in PACKAGES if package.name.startswith("adapter-")]

OURS = {
    "core": set(),
    "contract-tests": {"qak_core"},
    "documents": set(),
    "gateway": {"qak_core"},
    "knowledge-service": {"qak_documents"},
    "adapter-local": {"qak_core", "qak_documents"},
}
"""What each package may import of the others; an adapter that is not named here may import the core."""


def project(package: Path) -> dict:
    return tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))


def import_name(package: Path) -> str:
    return project(package)["project"]["name"].replace("-", "_")


def modules(package: Path) -> Iterator[Path]:
    return (package / "src").rglob("*.py")


def imports(module: Path, *, top_level_only: bool = False) -> set[str]:
    """Return the first part of every absolute import, or of those that run when the module is imported."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    nodes = top_level(tree.body) if top_level_only else ast.walk(tree)
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Walk what runs at import: not functions, not what is for type checkers, not what may fail to be there."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and re.search(r"TYPE_CHECKING|sys\.platform|os\.name", ast.unparse(node.test)):
            continue
        if isinstance(node, ast.Try) and any("ImportError" in ast.unparse(handler) for handler in node.handlers):
            continue
        for part in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from top_level([child for child in getattr(node, part, []) if isinstance(child, ast.stmt)])


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_has_the_rooms_of_every_package(package: Path) -> None:
    name = import_name(package)
    assert name == "qak_" + package.name.replace("-", "_")
    for path in ("README.md", "CHANGELOG.md", f"src/{name}/__init__.py", f"src/{name}/py.typed", "tests"):
        assert (package / path).exists(), path


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_brings_the_licence_since_its_wheel_travels_alone(package: Path) -> None:
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()  # a link would be left out of wheels


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_keeps_a_changelog_with_its_version(package: Path) -> None:
    headings = re.findall("^#.*", (package / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert headings[:3] == ["# Changelog", "## Unreleased", f"## {project(package)['project']['version']}"]


@pytest.mark.parametrize("package", ADAPTERS, ids=[package.name for package in ADAPTERS])
def test_adapter_has_the_rooms_of_every_adapter(package: Path) -> None:
    source = package / "src" / import_name(package)
    for room in ("settings.py", "provider.py", "_convert.py", "_errors.py"):
        assert (source / room).exists(), room
    points = project(package)["project"]["entry-points"]["qak.providers.v1"]
    assert list(points) == [package.name.removeprefix("adapter-")]


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_holds_no_tool_configuration(package: Path) -> None:
    assert set(project(package).get("tool", {})) <= {"hatch"}
    assert set(project(package).get("tool", {}).get("hatch", {})) <= {"build"}


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_imports_only_what_lies_below_it(package: Path) -> None:
    ours = {import_name(other) for other in PACKAGES}
    allowed = OURS.get(package.name, {"qak_core"}) | {import_name(package)}
    for module in modules(package):
        assert imports(module) & ours <= allowed, module


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_depends_on_what_it_imports_of_ours(package: Path) -> None:
    declared = " ".join(project(package)["project"].get("dependencies", []))
    used = set().union(*(imports(module) for module in modules(package))) - {import_name(package)}
    for name in used & {import_name(other) for other in PACKAGES}:
        assert name.replace("_", "-") in declared


def test_core_imports_nothing_but_the_standard_library_and_its_two_dependencies() -> None:
    for module in modules(ROOT / "packages" / "core"):
        foreign = imports(module) - set(sys.stdlib_module_names) - {"qak_core"}
        assert foreign <= {"ada_url", "importlib_metadata"}, module


@pytest.mark.parametrize("package", PACKAGES, ids=IDS)
def test_package_imports_nothing_posix_only_when_it_is_imported(package: Path) -> None:
    posix_only = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}
    for module in modules(package):
        assert not imports(module, top_level_only=True) & posix_only, module


def test_workspace_has_no_project_at_its_root() -> None:
    assert not (ROOT / "pyproject.toml").exists()


def test_light_environment_holds_members_that_exist() -> None:
    environments = tomllib.loads((ROOT / "hatch.toml").read_text(encoding="utf-8"))["envs"]
    for member in environments["default"]["workspace"]["members"]:
        assert (ROOT / member / "pyproject.toml").exists()
    assert environments["all"]["workspace"]["members"] == ["packages/*"]

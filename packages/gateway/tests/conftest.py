"""The installed command `qak`, run as its users run it: in a process of its own, in a pipe or on a terminal."""

import os
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

QAK = Path(sysconfig.get_path("scripts")) / "qak"

PROVIDER = """
import asyncio, time
from dataclasses import dataclass
from pathlib import Path
from qak_core import ProviderDescription
from qak_core.authoring import read_settings

@dataclass(frozen=True, kw_only=True)
class Settings:
    mode: str = "found"
    file: Path | None = None
    limit: int = 8

class Provider:
    def __init__(self, settings):
        self.settings = settings

    def describe(self):
        return ProviderDescription(key="my-app", label="My application",
                                   knowledge_bases=["engineering", "sales"])

    async def health(self):
        return {"status": "unavailable", "message": "no route"} if self.settings.mode == "fail" else {"status": "ready"}

    async def retrieve(self, request, context):
        context.signal.raise_if_cancelled()
        mode = self.settings.mode
        if mode == "deaf thread":
            Path("started").touch()
            await asyncio.to_thread(time.sleep, 60)
        if mode == "fail":
            raise RuntimeError("lost password=hunter22 \\x1b[2J")
        if mode == "exit":
            raise SystemExit(0)
        if mode == "degraded":
            return {"results": [], "degraded": ["sales\\x1b[2J"]}
        if mode == "nothing":
            return []
        text = self.settings.file.read_text() if self.settings.file else TEXT
        return [
            {"id": "1", "content": text, "score": 0.5,
             "source": {"title": "发布手册", "uri": "https://docs.example.com/releases", "locator": "section=审批"}},
            {"id": "2", "content": request.query, "source": {"title": f"for {context.owner_id}"}},
        ][: None if mode == "greedy" else request.top_k]

TEXT = "发布需要两位审核人批准。 [bold]no markup[/bold] :smile: \\x1b]0;owned\\x07 end"

def create(settings):
    print("a banner of the vendor")
    return Provider(read_settings(Settings, settings))
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def _environment(**more: str) -> dict[str, str]:
    """Return this environment without what would change how qak behaves."""
    unwanted = ("QAK_", "QWEN_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONDONTWRITEBYTECODE", "COVERAGE")
    return {key: value for key, value in os.environ.items() if not key.startswith(unwanted)} | more


@pytest.fixture
def qak(tmp_path: Path) -> Callable[..., Ran]:
    """Run `qak` in `tmp_path` with its output in pipes."""

    def run(*arguments: str, cwd: Path = tmp_path, **more: str) -> Ran:
        done = subprocess.run([QAK, *arguments], cwd=cwd, env=_environment(**more), capture_output=True, timeout=60)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def start_qak(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start `qak` in `tmp_path` and leave it to the test."""

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([QAK, *arguments], cwd=tmp_path, env=_environment(), **pipes)

    return start


@pytest.fixture
def qak_on_terminal(tmp_path: Path) -> Callable[..., Ran]:
    """Run `qak` in `tmp_path` on a terminal of 80 columns, which gets both streams."""
    import pty

    def run(*arguments: str, **more: str) -> Ran:
        ours, theirs = pty.openpty()
        env = _environment(**{"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"} | more)
        process = subprocess.Popen([QAK, *arguments], cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # Linux says "input/output error" when the other end is closed
            pass
        finally:
            os.close(ours)
        return Ran(process.wait(timeout=60), shown.decode().replace("\r\n", "\n"), "")

    return run


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Path]:
    """Write a provider and a `qak.toml` that names it into `tmp_path`, and return the file."""

    def write(mode: str = "found", runtime: str = "", settings: str = "") -> Path:
        (tmp_path / "my_app.py").write_text(PROVIDER, encoding="utf-8")
        path = tmp_path / "qak.toml"
        path.write_text(
            f'[provider]\nadapter = "my_app:create"\nmode = "{mode}"\n{settings}\n[runtime]\n{runtime}\n', "utf-8"
        )
        return path

    return write


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Mapping[str, str]]:
    """Install distributions that each claim an adapter, and return the environment that sees them."""

    def install(**claims: tuple[str, str]) -> Mapping[str, str]:
        folder = tmp_path / "site"
        for distribution, (adapter, target) in claims.items():
            info = folder / f"{distribution}-2.5.dist-info"
            info.mkdir(parents=True)
            name = distribution.replace("_", "-")
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n", "utf-8")
            (info / "entry_points.txt").write_text(f"[qak.providers.v1]\n{adapter} = {target}\n", "utf-8")
        return {"PYTHONPATH": str(folder)}

    return install

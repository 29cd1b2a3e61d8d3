"""What the README says is so."""

import re
from dataclasses import fields
from pathlib import Path

from typer.testing import CliRunner

from qak_gateway.cli import app
from qak_gateway.configuration import RuntimeSettings, read_configuration

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_readme_shows_a_configuration_that_is_read(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "qak.toml").write_text(snippet, "utf-8")
    configuration = read_configuration(tmp_path / "qak.toml")
    assert configuration.problems == ()
    assert configuration.adapter == "langchain"
    assert configuration.settings["knowledge_bases"] == {"engineering": "my_app.rag:engineering"}


def test_readme_lists_the_runtime_settings_with_their_defaults() -> None:
    section = README.partition("| `[runtime]` |")[2].partition("\n\n")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", section, flags=re.MULTILINE))
    assert listed == {field.name: str(field.default).replace("en", '"en"') for field in fields(RuntimeSettings)}


def test_readme_names_commands_and_options_that_exist() -> None:
    for command in re.findall(r"^\| `qak ([a-z ]+)", README, flags=re.MULTILINE):
        assert CliRunner().invoke(app, [*command.split(), "--help"]).exit_code == 0, command
    shown = "".join(
        CliRunner().invoke(app, [*command.split(), "--help"]).output
        for command in ("search", "doctor", "check", "library add")
    )
    options = set(re.findall(r"`(--[a-z-]+)", README)) - {"--help"}
    assert {option for option in options if option not in shown} == set()

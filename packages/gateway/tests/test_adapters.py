"""`qak adapters`: a listing that imports nothing and survives everybody."""

import ast
import os
import subprocess
import sys
from pathlib import Path


def rows(text: str) -> dict[tuple[str, str], tuple[str, str]]:
    cells = [line.split("\t") for line in text.splitlines()]
    return {(adapter, distribution): (version, state) for adapter, distribution, version, state in cells}


def test_adapters_lists_name_distribution_version_and_state(qak, site) -> None:
    ran = qak("adapters", **site(acme_search=("acme", "json:loads")))
    assert ran.code == 0
    assert rows(ran.out)["acme", "acme-search"] == ("2.5", "ok")


def test_adapters_shows_a_broken_and_a_conflicting_one_and_still_the_others(qak, site) -> None:
    claims = {
        "acme_search": ("acme", "json:loads"),
        "broken_search": ("broken", "module_that_is_not_there:create"),
        "one_search": ("same", "json:loads"),
        "other_search": ("same", "json:loads"),
    }
    ran = qak("adapters", **site(**claims))
    shown = rows(ran.out)
    assert ran.code == 0
    assert shown["acme", "acme-search"][1] == "ok"
    assert "module_that_is_not_there" in shown["broken", "broken-search"][1]
    for distribution in ("one-search", "other-search"):
        assert "one-search and other-search" in shown["same", distribution][1]


def test_adapters_survives_what_an_interrupted_uninstall_left_behind(qak, site) -> None:
    seen = site(acme_search=("acme", "json:loads"), half_gone=("half", "json:loads"))
    (Path(seen["PYTHONPATH"]) / "half_gone-2.5.dist-info" / "METADATA").unlink()
    ran = qak("adapters", **seen)
    assert ran.code == 0
    assert ("2.5", "ok") in rows(ran.out).values()
    assert "cannot be read" in ran.out


def test_adapters_imports_no_vendor(tmp_path: Path, site) -> None:
    seen = site(acme_search=("acme", "acme_vendor.provider:create"))
    package = Path(seen["PYTHONPATH"]) / "acme_vendor"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n", "utf-8")
    probe = (
        "import sys; from qak_gateway.cli import app\n"
        "try: app(['adapters'])\n"
        "except SystemExit as end:\n"
        "    print([end.code, *(name for name in sys.modules if name.startswith(('acme', 'qak_adapter')))])"
    )
    env = os.environ | seen
    shown = subprocess.run([sys.executable, "-c", probe], env=env, capture_output=True, text=True, check=True)
    assert "acme" in shown.stdout
    assert ast.literal_eval(shown.stdout.splitlines()[-1]) == [0]


def test_adapters_is_a_table_of_80_columns_on_a_terminal(qak_on_terminal, site) -> None:
    claims = {
        "acme_search": ("acme", "json:loads"),
        "broken_search": ("broken", "a_module_with_a_long_name_" * 4 + ":x"),
    }
    ran = qak_on_terminal("adapters", NO_COLOR="1", **site(**claims))
    assert ran.code == 0
    assert "distribution" in ran.out
    assert "a_long_name" in ran.out

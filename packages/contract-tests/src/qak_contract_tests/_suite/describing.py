"""Who a provider says it is (protocol section 1)."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterable, Mapping

from qak_contract_tests._hits import snapshot, vandalise
from qak_contract_tests._plain import foreign_objects
from qak_contract_tests._probe import Probe, read_description
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail
from qak_core import PROTOCOL_VERSION, KnowledgeBase, RetrievalRequest

_KEY = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_CAPABILITY = re.compile(r"[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?")
_PROMPT_S = 0.01


class DescribingClauses(ContractBase):
    """Clauses on the description."""

    @clause("provider.shape")
    async def test_provider_has_the_methods_of_the_protocol(self, probe: Probe) -> None:
        provider = probe.provider
        for name in ("describe", "retrieve"):
            if not callable(getattr(provider, name, None)):
                fail(f"{name} must be a method, got {type(getattr(provider, name, None)).__name__}")
        for name in ("health", "close"):
            member = getattr(provider, name, None)
            if member is not None and not callable(member):
                fail(f"{name} must be a method where it exists, got {type(member).__name__}")
        described = provider.describe()
        if inspect.isawaitable(described):
            if inspect.iscoroutine(described):
                described.close()
            fail("describe must be a plain method, got an async one")
        answer = provider.retrieve(RetrievalRequest(query=probe.corpus.common_query), probe.context())
        if not inspect.isawaitable(answer):
            fail(f"retrieve must be async, it returned {type(answer).__name__} without being awaited")
        await answer

    @clause("describe.version")
    async def test_description_names_version_one(self, probe: Probe) -> None:
        version = read_description(probe.provider).get("protocol_version")
        if type(version) is not int or version != PROTOCOL_VERSION:
            fail(f"protocol_version must be the integer {PROTOCOL_VERSION}, got {version!r}")

    @clause("describe.key")
    async def test_description_has_a_key(self, probe: Probe) -> None:
        key = read_description(probe.provider).get("key")
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            fail(f"key must be 1 to 64 lower-case letters, digits and inner hyphens, got {key!r}")

    @clause("describe.label")
    async def test_description_has_a_label(self, probe: Probe) -> None:
        label = read_description(probe.provider).get("label")
        if not isinstance(label, str) or not 0 < len(label.strip()) <= 120:
            fail(f"label must be text of 1 to 120 characters, got {label!r}")

    @clause("describe.capabilities")
    async def test_capabilities_are_names_with_booleans(self, probe: Probe) -> None:
        capabilities = read_description(probe.provider).get("capabilities", {})
        if not isinstance(capabilities, Mapping) or len(capabilities) > 16:
            fail(f"capabilities must be a mapping of at most 16 names to true or false, got {capabilities!r}")
        for name, flag in capabilities.items():
            if not isinstance(name, str) or not _CAPABILITY.fullmatch(name):
                fail(f"a capability's name must be lower-case letters, digits, hyphens or underscores, got {name!r}")
            if type(flag) is not bool:
                fail(f"capability {name!r} must be True or False, got {flag!r}")

    @clause("describe.knowledge_bases")
    async def test_published_knowledge_bases_have_ids(self, probe: Probe) -> None:
        published = read_description(probe.provider).get("knowledge_bases") or ()
        if isinstance(published, str) or not isinstance(published, Iterable):
            fail(f"knowledge_bases must be a list of ids, got {type(published).__name__}")
        ids = [_base_id(entry) for entry in published]
        for base_id in ids:
            if not isinstance(base_id, str) or not 0 < len(base_id.strip()) <= 120:
                fail(f"a knowledge-base id must be text of 1 to 120 characters, got {base_id!r}")
        if len(set(ids)) < len(ids):
            fail(f"knowledge-base ids must differ, got {ids!r}")

    @clause("describe.frozen")
    async def test_description_never_changes(self, probe: Probe) -> None:
        first = snapshot(probe.provider.describe())
        vandalise(probe.provider.describe())
        await probe.find(probe.corpus.common_query)
        again = snapshot(probe.provider.describe())
        if again != first:
            fail(f"describe() must always say the same, it said {first!r} and later {again!r}")

    @clause("describe.prompt")
    async def test_description_comes_at_once(self, probe: Probe) -> None:
        durations = []
        for _ in range(5):
            start = time.perf_counter()
            probe.provider.describe()
            durations.append(time.perf_counter() - start)
            if durations[-1] <= _PROMPT_S:
                return
        fail(
            f"describe() took {min(durations) * 1000:.0f} ms at best, expected less than {_PROMPT_S * 1000:.0f}: "
            "keep what it says in the provider"
        )

    @clause("describe.plain")
    async def test_description_holds_no_foreign_object(self, probe: Probe) -> None:
        for found in foreign_objects(probe.provider.describe(), "describe()"):
            fail(f"{found}; only built-in values may leave a provider")


def _base_id(entry: object) -> object:
    if isinstance(entry, KnowledgeBase):
        return entry.id
    return entry.get("id") if isinstance(entry, Mapping) else entry

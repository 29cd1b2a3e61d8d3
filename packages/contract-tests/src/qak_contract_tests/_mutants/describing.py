"""Providers that say wrong things of themselves."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from qak_contract_tests._mutants.base import Mutant, breaks
from qak_contract_tests.corpus import Corpus
from qak_core import KnowledgeBase, ProviderDescription, RetrievalContext, RetrievalRequest, to_wire


@breaks("provider.shape")
class HealthIsAField(Mutant):
    """Keeps its health as a value instead of answering."""

    health: Any = "ready"


@breaks("describe.version")
class VersionIsText(Mutant):
    """Read its version from a configuration file."""

    def describe(self) -> Any:
        return to_wire(super().describe()) | {"protocolVersion": "1"}


@breaks("describe.version")
class VersionIsTrue(Mutant):
    """Relies on True being equal to 1."""

    def describe(self) -> Any:
        return replace(super().describe(), protocol_version=True)


@breaks("describe.key")
class KeyIsATitle(Mutant):
    """Uses a name for people as its key."""

    def describe(self) -> ProviderDescription:
        return replace(super().describe(), key="Reference Provider")


@breaks("describe.label")
class LabelIsBlank(Mutant):
    """Has no name for people."""

    def describe(self) -> ProviderDescription:
        return replace(super().describe(), label="  ")


@breaks("describe.capabilities")
class CapabilityIsText(Mutant):
    """Explains a capability instead of declaring it."""

    def describe(self) -> Any:
        described = super().describe()
        return replace(described, capabilities={**described.capabilities, "streaming": "soon"})  # type: ignore[dict-item]


@breaks("describe.knowledge_bases")
class KnowledgeBasePublishedTwice(Mutant):
    """Lists a knowledge base once for each of its collections."""

    def describe(self) -> ProviderDescription:
        described = super().describe()
        again = KnowledgeBase(id=described.knowledge_bases[0].id, label="another collection")
        return replace(described, knowledge_bases=(*described.knowledge_bases, again))


@breaks("describe.frozen")
class DescriptionCounts(Mutant):
    """Tells in its label how much it has been used."""

    _searches = 0

    def describe(self) -> ProviderDescription:
        return replace(super().describe(), label=f"Reference provider, {self._searches} searches")

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        self._searches += 1
        return await super().retrieve(request, context)


@breaks("describe.frozen")
class DescriptionIsShared(Mutant):
    """Gives everybody the one dictionary that it keeps."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self._described = to_wire(super().describe())

    def describe(self) -> Any:
        return self._described


@breaks("describe.prompt")
class DescriptionIsFetched(Mutant):
    """Asks its server who it is."""

    def describe(self) -> ProviderDescription:
        time.sleep(0.012)
        return super().describe()


class _VendorName(str):
    __slots__ = ()


@breaks("describe.plain")
class LabelIsAVendorsObject(Mutant):
    """Hands on the vendor's own kind of text."""

    def describe(self) -> ProviderDescription:
        return replace(super().describe(), label=_VendorName("Reference provider"))

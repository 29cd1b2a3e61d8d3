import pytest

from qak_core import KnowledgeRuntime, normalize_response
from qak_core.citations import CitationLedger, TurnCitations

from ._providers import Provider

pytestmark = pytest.mark.clause("citation.stable", "runtime.turn_citations")


def page(number, **fields):
    return {"id": f"r{number}", "content": "text", "source": {"uri": f"https://example.com/{number}"}, **fields}


def cited(answer):
    return [result.citation_id for result in answer.results]


@pytest.mark.clause("citation.fields")
@pytest.mark.parametrize(
    ("source", "title"),
    [
        ({"title": "T", "id": "d"}, "T"),
        ({"id": "d"}, "d"),
        ({}, "example.com"),
        ({"title": " \n", "id": ""}, "example.com"),
        ({"title": "年" * 400}, "年" * 300),
    ],
)
def test_a_citation_is_titled_by_title_else_id_else_host(source, title):
    [citation] = normalize_response(
        [{"id": "1", "content": "x", "source": {**source, "uri": "https://example.com/x"}}], query="q"
    ).citations
    assert citation.title == title
    assert (citation.id, citation.url) == ("source_1", "https://example.com/x")


@pytest.mark.clause("citation.fields")
@pytest.mark.parametrize(
    ("content", "snippet"),
    [
        ("  a\n\n b\tc\u3000d ", "a b c d"),
        ("年" * 400, "年" * 300),
        ("x" * 299 + "👩\u200d👧", "x" * 299),
        ("ab " * 200, ("ab " * 100).rstrip()),
    ],
)
def test_a_snippet_is_the_start_of_the_content_on_one_line(content, snippet):
    [citation] = normalize_response([page(1, content=content)], query="q").citations
    assert citation.snippet == snippet


@pytest.mark.clause("citation.fields")
@pytest.mark.parametrize("name", ["published_at", "publishedAt"])
def test_a_date_and_a_source_are_given_where_they_are_known(name):
    result = page(1, metadata={name: "2026-11-30"}, source={"id": "d", "uri": "https://example.com/1"})
    [citation] = normalize_response([result], query="q").citations
    assert (citation.published_at, citation.source) == ("2026-11-30", "d")
    [citation] = normalize_response([page(1, metadata={name: 2026})], query="q").citations
    assert citation.to_dict().keys() == {"id", "title", "url", "snippet"}


def test_two_results_from_one_address_share_a_citation():
    addresses = ["https://example.com/1", "https://EXAMPLE.com:443/1#part", "https://example.com/a/../1"]
    results = [{"id": str(number), "content": "x", "source": {"uri": uri}} for number, uri in enumerate(addresses)]
    answer = normalize_response(results, query="q")
    assert cited(answer) == ["source_1"] * 3
    assert [citation.id for citation in answer.citations] == ["source_1"]


def test_a_number_is_the_same_in_later_calls_of_the_turn_and_only_there(run):
    provider = Provider()
    runtime = KnowledgeRuntime(provider)

    async def ask(*pages, turn_id="t", session_id="s", owner_id="o"):
        provider.response = [page(number) for number in pages]
        return cited(await runtime.search("q", owner_id=owner_id, session_id=session_id, turn_id=turn_id))

    async def scenario():
        assert await ask(1, 2) == ["source_1", "source_2"]
        assert await ask(2, 3, 1) == ["source_2", "source_3", "source_1"]
        for other in ({"turn_id": "u"}, {"session_id": "u"}, {"owner_id": "u"}):
            assert await ask(3, **other) == ["source_1"]
        assert await ask(3) == ["source_3"]

    run(scenario())


def test_without_a_turn_each_call_counts_for_itself(run):
    provider = Provider([page(1)])
    runtime = KnowledgeRuntime(provider)

    async def scenario():
        await runtime.search("q", owner_id="o")
        provider.response = [page(2)]
        return await runtime.search("q", owner_id="o")

    assert cited(run(scenario())) == ["source_1"]


def test_beyond_sixteen_a_result_keeps_its_text_and_its_source():
    turn = TurnCitations()
    for first in (0, 8):
        answer = normalize_response([page(first + n) for n in range(8)], query="q", top_k=8, turn=turn)
        assert cited(answer) == [f"source_{first + n + 1}" for n in range(8)]
    answer = normalize_response([page(16), page(3)], query="q", turn=turn)
    assert cited(answer) == [None, "source_4"]
    assert answer.results[0].source.uri == "https://example.com/16"
    assert "citation_id" not in answer.to_dict()["results"][0]
    assert [citation.id for citation in answer.citations] == ["source_4"]


def test_a_dropped_result_takes_no_number():
    answer = normalize_response([page(1, content=""), page(2), page(2), page(3)], query="q", top_k=1)
    assert [citation.to_dict()["url"] for citation in answer.citations] == ["https://example.com/2"]
    assert cited(answer) == ["source_1"]


def test_a_hundred_turns_are_kept_and_the_one_used_longest_ago_is_forgotten():
    ledger = CitationLedger()
    for number in range(100):
        ledger.turn("o", "s", f"t{number}").id_of(f"https://example.com/{number}")
    assert ledger.turn("o", "s", "t0").id_of("https://example.com/other") == "source_2"
    ledger.turn("o", "s", "t100").id_of("https://example.com/100")
    assert ledger.turn("o", "s", "t0").id_of("https://example.com/third") == "source_3"
    assert ledger.turn("o", "s", "t1").id_of("https://example.com/other") == "source_1"


def test_borders_between_owner_session_and_turn_do_not_blur():
    ledger = CitationLedger()
    ledger.turn("a", "b", "c").id_of("https://example.com/")
    for key in (("ab", "", "c"), ("", "ab", "c"), ("a", "bc", "c"), ("a", "", "bc")):
        assert ledger.turn(*key).id_of("https://example.com/other") == "source_1"

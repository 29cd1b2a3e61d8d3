import json

import pytest

from qak_core import normalize_response

pytestmark = pytest.mark.clause("response.budget")

LIMIT = 64 * 1024


def size(answer):
    return len(json.dumps(answer.to_dict(), ensure_ascii=False).encode())


def results(count, content, **fields):
    return [{"id": str(number), "content": content, **fields} for number in range(count)]


@pytest.mark.parametrize("char", ["x", "é", "年", "😀", '"', "\\"])
def test_what_fits_is_left_as_it_is(char):
    answer = normalize_response(results(2, char * 4000), query="q", top_k=8)
    assert [result.content for result in answer.results] == [char * 4000] * 2
    assert not any(result.truncated for result in answer.results)


@pytest.mark.parametrize("char", ["年", "😀", "𠀀"])
def test_contents_are_shortened_evenly_and_say_so(char):
    answer = normalize_response(results(8, char * 4000), query="q", top_k=8)
    lengths = [len(result.content) for result in answer.results]
    assert len(set(lengths)) == 1
    assert all(result.truncated for result in answer.results)
    # Evenly and as much as there is room for, not much less.
    assert LIMIT - 1024 < size(answer) <= LIMIT


def test_only_the_long_contents_are_shortened():
    short = {"id": "short", "content": "Two people approve a release."}
    answer = normalize_response([short, *results(7, "年" * 4000)], query="q", top_k=8)
    first, *others = answer.results
    assert first.content == short["content"]
    assert not first.truncated
    assert all(result.truncated and len(result.content) > 2500 for result in others)


@pytest.mark.parametrize("piece", ["👩\u200d👩\u200d👧", "e\u0301\u0323", "🇨🇳", "\u1112\u1161\u11ab"])
def test_shortening_does_not_split_a_grapheme_cluster(piece):
    answer = normalize_response(results(8, piece * 1000, metadata={"a": "年" * 500}), query="q", top_k=8)
    for result in answer.results:
        assert result.content == piece * (len(result.content) // len(piece))


def test_metadata_goes_from_the_end_before_a_result_does():
    heavy = {f"k{number}": "😀" * 500 for number in range(16)}
    answer = normalize_response(results(8, "text", metadata=heavy), query="q", top_k=8)
    assert [result.content for result in answer.results] == ["text"] * 8
    kept = [bool(result.metadata) for result in answer.results]
    assert kept == sorted(kept, reverse=True)
    assert any(kept)
    assert size(answer) <= LIMIT


def test_results_go_from_the_end_when_nothing_else_is_left_and_are_counted():
    sources = [
        {"id": "😀" * 120, "title": "😀" * 300, "uri": f"https://example.com/{n}" + "y" * 2000, "locator": "😀" * 300}
        for n in range(8)
    ]
    heavy = [{"id": f"{n}" + "😀" * 150, "content": "😀" * 4000, "source": source} for n, source in enumerate(sources)]
    answer = normalize_response(heavy, query="😀" * 500, top_k=8)
    assert [result.id[0] for result in answer.results] == [str(number) for number in range(len(answer.results))]
    assert len(answer.results) + answer.dropped.get("over_budget", 0) == 8
    assert len(answer.results) >= 4
    assert {citation.id for citation in answer.citations} == {result.citation_id for result in answer.results}
    assert size(answer) <= LIMIT

import pytest

from qak_core import RetrievalResult, Source, normalize_response
from qak_core.authoring import Reading, passage_metadata

pytestmark = pytest.mark.clause("notice", "response.source")

RESULT = RetrievalResult(
    id="a",
    content="two approvers",
    source=Source(
        id="d1", title="Releases", uri="https://docs.example.com/r", mime_type="text/markdown", locator="page 2"
    ),
    metadata={"department": "sales"},
)


def test_passage_says_where_it_is_from_and_that_it_is_untrusted():
    answer = normalize_response([RESULT], query="who approves")
    metadata = passage_metadata(answer.results[0], answer)
    assert metadata == {
        "department": "sales",
        "title": "Releases",
        "url": "https://docs.example.com/r",
        "mime_type": "text/markdown",
        "locator": "page 2",
        "source_id": "d1",
        "citation_id": "source_1",
        "citation": answer.citations[0].to_dict(),
        "notice": answer.notice,
    }


def test_passage_without_a_source_has_the_notice_alone():
    answer = normalize_response([{"id": "a", "content": "text"}], query="text")
    assert passage_metadata(answer.results[0], answer) == {"notice": answer.notice}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_passage_that_is_read_again_is_the_same_result(language):
    answer = normalize_response([RESULT], query="who approves", language=language)
    metadata = passage_metadata(answer.results[0], answer)
    assert Reading().result(RESULT.content, metadata, own_id="a") == RESULT

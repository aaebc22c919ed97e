"""Query parameters are checked in one place, by the table."""

from pathlib import Path

import pytest

from towline_agent.testing import ScriptedProvider
from towline_protocol import QUERIES, Operation, Problem, Query, UsageError
from towline_server.api.query import read_query
from towline_server.testing import AppClient, open_test_app

ROWS = {
    row.name: row
    for row in (
        Query(name="count", about="", kind="integer", least=-2, most=10),
        Query(name="any", about="", kind="integer"),
        Query(name="word", about="", most=3),
        Query(name="long", about=""),
        Query(name="flag", about="", kind="flag"),
    )
}
LIST = Operation(name="x", method="GET", path="/x", summary="X.", query=tuple(ROWS))


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    for name, row in ROWS.items():
        monkeypatch.setitem(QUERIES, name, row)


def test_what_fits_comes_with_its_kind_and_what_is_unknown_is_passed_over() -> None:
    given = {"count": "-2", "any": "007", "word": "äöü", "long": "x" * 999, "flag": "true"}
    read = read_query(LIST, {**given, "other": "1", "Count": "x"})
    assert read == {"count": -2, "any": 7, "word": "äöü", "long": "x" * 999, "flag": True}
    assert read_query(LIST, {"flag": "false", "word": ""}) == {"flag": False, "word": ""}
    assert read_query(LIST, {}) == {}


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("count", "-3", "a whole number from -2 to 10"),
        ("count", "11", "a whole number from -2 to 10"),
        ("count", "", "a whole number"),
        ("count", "1.0", "a whole number"),
        ("count", "1e1", "a whole number"),
        ("count", " 1", "a whole number"),
        ("count", "\u0661", "a whole number"),
        ("count", "1_0", "a whole number"),
        ("any", "9" * 5000, "a whole number"),
        ("word", "four", "at most 3 characters"),
        ("word", "\0", "a text without a NUL"),
        ("long", "a\0b", "a text without a NUL"),
        ("flag", "1", "`true` or `false`"),
        ("flag", "TRUE", "`true` or `false`"),
        ("flag", "", "`true` or `false`"),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(name: str, text: str, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted) as caught:
        read_query(LIST, {name: text})
    assert caught.value.message.startswith(f"The parameter {name}=")
    assert len(caught.value.message) < 150
    assert caught.value.details == {"parameter": name}


@pytest.mark.rules("C2.2", "C2.3")
async def test_a_wrong_parameter_is_told_before_the_operation_runs(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        reply = await client.ask("GET", "/api/sessions?limit=many")
        problem = reply.read(Problem)
        assert (reply.status, problem.code) == (400, "invalid_request")
        assert problem.details == {"parameter": "limit"}
        session = await client.create()
        for path in (
            "/api/sessions?search=%00",
            "/api/sessions?search=word%00more",
            "/api/sessions?label=%00",
            "/api/sessions?after=1-%00",
            f"/api/sessions/{session}/paths?prefix=%00",
            "/api/start?folder=%00",
            "/api/usage?from=%00",
            f"/api/events?session={session}%00",
            f"/api/sessions/{session}/events?reader=%00",
        ):
            refused = await client.ask("GET", path)
            assert (refused.status, refused.read(Problem).code) == (400, "invalid_request"), path
        stream = await client.ask("GET", f"/api/sessions/ses_0/events?reader={'x' * 65}")
        assert stream.status == 400
        assert (await client.ask("GET", "/api/sessions?limit=3&color=red")).status == 200
        nobody = AppClient(built, token="")
        assert (await nobody.ask("GET", "/api/sessions?limit=many")).status == 401

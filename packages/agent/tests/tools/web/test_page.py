"""HTML becomes text."""

import time

import pytest

from towline_agent.tools.web.page import MAX_TOKENS, page_text

URL = "https://example.com/docs/page"


def read(html: str, limit: int = 20_000) -> str:
    return page_text(html, URL, limit)[1]


PAGE = """<!doctype html><html><head><title> The
 title &amp; more</title><style>p {}</style></head><body><!-- not this -->
<h1>Hello <em>you</em></h1>
<p>One <a href="/x?a=1&amp;b=2">link</a>, <b>bold</b> and
   <code>code</code>.<p>Two<br>lines
<ul><li>a<li>b<ul><li>c</ul></ul><ol><li>x</li><li>y</li></ol>
<pre>x = 1
  y &lt; 2</pre>
<table><tr><th>A</th><th>B</th></tr><tr><td>1<td>2</tr></table>
<script>alert("</p>")</script>1 < 2 <img src=a.png alt="a picture"> end</body></html>"""

TEXT = """# Hello you

One [link](https://example.com/x?a=1&b=2), **bold** and `code`.

Two
lines

- a
- b
  - c

1. x
2. y

```
x = 1
  y < 2
```

A | B
1 | 2

1 < 2 ![a picture] end"""


@pytest.mark.rules("A5.33")
def test_a_page_becomes_text() -> None:
    assert page_text(PAGE, URL, 20_000) == ("The title & more", TEXT, False)


@pytest.mark.rules("A5.33", "A5.35")
@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>no</p>", '<div style="display: NONE"><p>no</p></div>', "<script>no</script>",
        "<span style='visibility:hidden'>no</span>", '<b aria-hidden="true">no</b>', "<!-- no -->",
        "<template><p>no</p></template>", "<style>no</style>", "<svg><text>no</text></svg>",
        "<textarea>no</textarea>", "<iframe>no</iframe>", "<object>no</object>", "<?php no ?>",
        "<p style=font-size:0>no</p>", "<div hidden><div>no</div>no</div>", "<![CDATA[no]]>",
    ],
)  # fmt: skip
def test_what_people_do_not_see_is_left_out(hidden: str) -> None:
    assert read(f"<p>before</p>{hidden}<p>after</p>") == "before\n\nafter"


def test_links_that_lead_to_no_page_are_plain_words() -> None:
    assert read('<a href="javascript:x()">a</a> <a href="#b">b</a> <a>c</a>') == "a b c"
    assert read(f'<a href="/{"x" * 600}">long</a> <a href="http://[bad">bad</a>') == "long bad"
    assert read('<base href="/other/"><a href="x">a</a>') == "[a](https://example.com/other/x)"


def test_a_page_without_tags_in_their_places_is_read_too() -> None:
    assert read("just words &lt;here&gt; &amp;c") == "just words <here> &c"
    assert read("<title>T</title>words") == "words"
    assert read("<head><title>T</title><body>words") == "words"
    assert read('<p class=don\'t title="a > b">words</p></div></ul></a>') == "words"
    assert read("<p>words <a href='x") == "words"
    assert read("1 <2 and a<b") == "1 <2 and a"
    assert read("<p>it<p/>works</p>") == "it\n\nworks"


def test_a_long_page_stops_where_nobody_reads_on() -> None:
    _, text, more = page_text("<p>word</p>" * 1000, URL, 100)
    assert more
    assert 100 <= len(text) < 200
    _, text, more = page_text("<i></i>" * MAX_TOKENS, URL, 100)
    assert (text, more) == ("", True)


@pytest.mark.wide
@pytest.mark.rules("A5.34")
@pytest.mark.parametrize(
    "piece",
    ["<!--", "<a ", "<![CDATA[", "<!", "</", '<a b="', "<a b='", "<div>", "<", "&#", "&amp", "<ul><li>",
     "<script>", "<b hidden>", "<title>", '<a href="x">', "</p>", "<a b=", "<pre>", "<a b=\"'", "<table>"],
)  # fmt: skip
def test_a_hostile_page_costs_no_more_than_its_length(piece: str) -> None:
    began = time.process_time()
    page_text(piece * (400_000 // len(piece)), URL, 1_000_000)
    assert time.process_time() - began < 10.0  # seconds; where it grows with the square, minutes


def test_a_number_without_an_end_is_one_unknown_letter() -> None:
    assert read("a&#" + "9" * 100_000 + ";b&#x1F600;") == "a\ufffdb\U0001f600"

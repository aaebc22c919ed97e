"""Definitions found in texts, by tree-sitter and without it."""

import random
import time
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any, Final

import pytest

from towline_agent.tools.code import symbols as module
from towline_agent.tools.code.languages import GRAMMARS, SUFFIXES
from towline_agent.tools.code.symbols import GrammarMissing, Symbol, python_symbols, symbols

PYTHON: Final = """\
LIMIT = 1
class Store(Base):
    size: int = 3

    @property
    def rows(self):
        local = 2
        def inner(): pass
    class Row: pass
async def load():
    pass
if LIMIT:
    maker = lambda: 1
"""
PYTHON_SYMBOLS: Final = [
    ("LIMIT", "variable", 1, 1, ""),
    ("Store", "class", 2, 9, ""),
    ("size", "field", 3, 3, "Store"),
    ("rows", "method", 6, 8, "Store"),
    ("inner", "function", 8, 8, "Store.rows"),
    ("Row", "class", 9, 9, "Store"),
    ("load", "function", 10, 11, ""),
    ("maker", "variable", 13, 13, ""),
]

TEXTS: Final[dict[str, tuple[str, list[tuple[str, str, int, int, str]]]]] = {
    "python": (PYTHON, PYTHON_SYMBOLS),
    "javascript": (
        """\
export default class Cart extends Base {
  static #total = 1;
  add = () => 1;
  constructor() { const local = 1; function inner() {} }
}
const load = async () => { const deep = () => 3; };
var limit = 5, {a, b} = c;
exports.save = function () {};
Cart.prototype.clear = () => 1;
module.exports = { open() {}, close: () => 2, size: 3 };
describe("it", () => { function made() {} });
function* each() {}
""",
        [
            ("Cart", "class", 1, 5, ""),
            ("total", "field", 2, 2, "Cart"),
            ("add", "method", 3, 3, "Cart"),
            ("constructor", "method", 4, 4, "Cart"),
            ("inner", "function", 4, 4, "Cart.constructor"),
            ("load", "function", 6, 6, ""),
            ("deep", "function", 6, 6, "load"),
            ("limit", "variable", 7, 7, ""),
            ("save", "function", 8, 8, ""),
            ("clear", "function", 9, 9, ""),
            ("open", "method", 10, 10, ""),
            ("close", "function", 10, 10, ""),
            ("made", "function", 11, 11, ""),
            ("each", "function", 12, 12, ""),
        ],
    ),
    "typescript": (
        """\
export interface Row<T> { id: string; save(): void }
export type Key = A | B;
export enum Mode { Ask }
namespace Deep.Er { export function inner(): void {} }
abstract class Store<T> { private size = 1; abstract load(): void; on = () => {}; }
function over(a: string): void;
export const conf = { make: () => 1 } as const;
""",
        [
            ("Row", "interface", 1, 1, ""),
            ("save", "method", 1, 1, "Row"),
            ("Key", "type", 2, 2, ""),
            ("Mode", "enum", 3, 3, ""),
            ("Deep.Er", "module", 4, 4, ""),
            ("inner", "function", 4, 4, "Deep.Er"),
            ("Store", "class", 5, 5, ""),
            ("size", "field", 5, 5, "Store"),
            ("load", "method", 5, 5, "Store"),
            ("on", "method", 5, 5, "Store"),
            ("over", "function", 6, 6, ""),
            ("conf", "variable", 7, 7, ""),
            ("make", "function", 7, 7, "conf"),
        ],
    ),
    "tsx": (
        "export const App: FC = () => <div onClick={() => 1}>x</div>;\n"
        "function Other() { return <App/> }\n",
        [("App", "function", 1, 1, ""), ("Other", "function", 2, 2, "")],
    ),
    "go": (
        """\
package main
const ( A = 1; B, C = 2, 3 )
var limit int
type Store[T any] struct { size int }
type Reader interface { Read(x int) error }
type Key = string
func (s *Store[T]) Load() {}
func main() { local := 1 }
""",
        [
            ("A", "constant", 2, 2, ""),
            ("B", "constant", 2, 2, ""),
            ("C", "constant", 2, 2, ""),
            ("limit", "variable", 3, 3, ""),
            ("Store", "struct", 4, 4, ""),
            ("Reader", "interface", 5, 5, ""),
            ("Read", "method", 5, 5, "Reader"),
            ("Key", "type", 6, 6, ""),
            ("Load", "method", 7, 7, "Store"),
            ("main", "function", 8, 8, ""),
        ],
    ),
    "rust": (
        """\
pub struct Store<T> { size: T }
impl<T> Store<T> { pub fn new() -> Self { fn inner() {} } const MAX: u8 = 1; }
impl fmt::Display for Store<u8> { fn fmt(&self) {} }
trait Load { fn load(&self); type Out; }
enum Mode { Ask }
mod deep { pub fn go() {} }
macro_rules! shout { () => {} }
static COUNT: u8 = 1;
""",
        [
            ("Store", "struct", 1, 1, ""),
            ("new", "method", 2, 2, "Store"),
            ("inner", "function", 2, 2, "Store.new"),
            ("MAX", "constant", 2, 2, "Store"),
            ("fmt", "method", 3, 3, "Store"),
            ("Load", "trait", 4, 4, ""),
            ("load", "method", 4, 4, "Load"),
            ("Out", "type", 4, 4, "Load"),
            ("Mode", "enum", 5, 5, ""),
            ("deep", "module", 6, 6, ""),
            ("go", "function", 6, 6, "deep"),
            ("shout", "macro", 7, 7, ""),
            ("COUNT", "variable", 8, 8, ""),
        ],
    ),
    "java": (
        """\
package p;
@interface Mark { int size() default 1; }
public class Store<T> extends Base {
  private int size = 1, count;
  Store() {}
  <Q> void load(int a) { int local; }
  enum Mode { ASK, AUTO; void turn() {} }
  record Row(int a) { void save() {} }
  interface Reader { void read(); }
}
""",
        [
            ("Mark", "interface", 2, 2, ""),
            ("Store", "class", 3, 10, ""),
            ("size", "field", 4, 4, "Store"),
            ("count", "field", 4, 4, "Store"),
            ("Store", "method", 5, 5, "Store"),
            ("load", "method", 6, 6, "Store"),
            ("Mode", "enum", 7, 7, "Store"),
            ("ASK", "constant", 7, 7, "Store.Mode"),
            ("AUTO", "constant", 7, 7, "Store.Mode"),
            ("turn", "method", 7, 7, "Store.Mode"),
            ("Row", "class", 8, 8, "Store"),
            ("save", "method", 8, 8, "Store.Row"),
            ("Reader", "interface", 9, 9, "Store"),
            ("read", "method", 9, 9, "Store.Reader"),
        ],
    ),
}


@pytest.mark.rules("A5.10")
@pytest.mark.parametrize("language", TEXTS)
def test_the_definitions_of_a_language_are_found(language: str) -> None:
    text, expected = TEXTS[language]
    assert list(symbols(language, text.encode())) == [Symbol(*row) for row in expected]


@pytest.mark.rules("A5.10")
@pytest.mark.parametrize("language", sorted(set(SUFFIXES.values())))
def test_each_language_has_a_grammar_of_its_own_wheel(language: str) -> None:
    grammar = GRAMMARS[language]
    made = getattr(import_module(grammar.module), grammar.maker)()
    known = import_module("tree_sitter").Language(made)
    names = (*grammar.kinds, *grammar.through)
    assert [name for name in names if known.id_for_node_kind(name, True) is None] == []


def test_broken_code_gives_what_can_be_made_out() -> None:
    text = b"class Store:\n    def load(self):\n        return (1,\n\n    def save(self): pass\n"
    names = {symbol.name for symbol in symbols("python", text)}
    assert {"Store", "load", "save"} <= names


@pytest.fixture
def no_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(language: str) -> Any:
        raise ImportError(language)

    monkeypatch.setattr(module, "_load", missing)


@pytest.mark.usefixtures("no_grammars")
@pytest.mark.rules("A5.10")
def test_python_without_a_grammar_is_read_by_its_own_parser() -> None:
    assert list(symbols("python", PYTHON.encode())) == [Symbol(*row) for row in PYTHON_SYMBOLS]


@pytest.mark.usefixtures("no_grammars")
def test_another_language_without_its_grammar_is_told() -> None:
    with pytest.raises(GrammarMissing, match="go"):
        symbols("go", b"package main")


def test_broken_python_without_a_grammar_gives_the_lines_that_define() -> None:
    text = b"class Store:\n    async  def load(self:\n\n\ndef save(:\n"
    assert python_symbols(text) == (
        Symbol("Store", "class", 1, 1, ""),
        Symbol("load", "method", 2, 2, ""),
        Symbol("save", "function", 5, 5, ""),
    )


@pytest.mark.parametrize("late_at", [1, 50, 500])
@pytest.mark.parametrize(
    ("language", "long", "short"),
    [
        ("python", b"def alpha(): pass\n", b"def beta(): pass\n"),
        ("java", b"class A { void a() {} }\n", b"class Beta { void beta() {} }\n"),
        ("go", b"func a() {}\n", b"package p\nfunc beta() {}\n"),
    ],
    ids=["python", "java", "go"],
)
def test_a_text_that_was_late_is_not_gone_on_with_in_the_next_one(
    language: str, long: bytes, short: bytes, late_at: int
) -> None:
    asked = count()
    with pytest.raises(TimeoutError):
        symbols(language, long * 60_000, late=lambda: next(asked) >= late_at)
    assert {symbol.name.lower() for symbol in symbols(language, short)} == {"beta"}


def _late(after_s: float) -> Callable[[], bool]:
    end = time.monotonic() + after_s
    return lambda: time.monotonic() > end


HOSTILE: Final = {
    "open brackets": b"(" * 200_000,
    "brackets": b"(" * 100_000 + b"1" + b")" * 100_000,
    "open braces": b"{" * 200_000,
    "ever deeper": b"".join(b" " * n + b"if x:\n" for n in range(800)),
    "functions in functions": b"".join(b" " * n + b"def f%d():\n" % n for n in range(800)),
    "nothing but NUL": b"\0" * 300_000,
    "noise": random.Random(1).randbytes(200_000),
    "signs": bytes(random.Random(2).choices(b"<>(){}[]=>,;ab\"'`$ \n/fn", k=200_000)),
    "less than": b"a<" * 100_000,
    "one long line": b"x = [" + b"1, " * 100_000 + b"]",
    "one long name": b"def " + b"f" * 500_000 + b"(): pass",
    "half a letter": b"def caf\xc3(): pass\nclass \xff\xfe: pass",
    "empty": b"",
}


ENDLESS: Final = {("java", "less than")}
"""What a grammar may never end, asking no time: its process ends with it (test_find_symbol)."""
ODD: Final = [
    pytest.param(language, text, id=f"{name}-{language}")
    for name, text in HOSTILE.items()
    for language in GRAMMARS
    if (language, name) not in ENDLESS
]


@pytest.mark.wide
@pytest.mark.parametrize(("language", "text"), ODD)
def test_odd_texts_end_in_time(language: str, text: bytes) -> None:
    begin = time.thread_time()
    try:
        found = symbols(language, text, late=_late(0.3))
    except TimeoutError:
        found = ()
    assert all(len(symbol.name) <= 200 and len(symbol.container) <= 200 for symbol in found)
    assert time.thread_time() - begin < 5.0


@pytest.mark.wide
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_odd_python_without_a_grammar_ends_in_time(text: bytes) -> None:
    begin = time.thread_time()
    python_symbols(text)
    assert time.thread_time() - begin < 5.0

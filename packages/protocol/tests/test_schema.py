"""The TypeScript files that are made from the types."""

import re
from pathlib import Path

import msgspec

from towline_protocol import (
    FAULT_CODES,
    OPERATIONS,
    Event,
    typescript_later,
    typescript_shapes,
    typescript_types,
)

WEB = Path(__file__).parents[3] / "web" / "src" / "protocol"


def test_the_files_of_the_web_app_are_fresh() -> None:
    for name, text in (
        ("types.gen.ts", typescript_types()),
        ("shapes.gen.ts", typescript_shapes()),
        ("later.gen.ts", typescript_later()),
    ):
        assert (WEB / name).read_text(encoding="utf-8") == text, f"{name}: run `make types`"


def test_every_event_fault_and_operation_is_in_them() -> None:
    types, shapes, later = typescript_types(), typescript_shapes(), typescript_later()
    for info in msgspec.inspect.multi_type_info(Event.__args__):
        assert isinstance(info, msgspec.inspect.StructType)
        assert f'readonly type: "{info.tag}";' in types
        row = rf'^  {info.cls.__name__}: "type={info.tag}\b'
        assert re.search(row, shapes + later, re.MULTILINE)
    for name, row in OPERATIONS.items():
        assert re.search(rf"^  {name}: .*request", types, re.MULTILINE)
        assert (f'"{row.path}"' in types) != (f'"{row.path}"' in later)
    assert all(f'"{code}"' in types for code in FAULT_CODES)


def test_a_field_that_may_stay_off_the_wire_is_optional() -> None:
    types = typescript_types()
    envelope = types[types.index("export interface Envelope {") :]
    envelope = envelope[: envelope.index("}\n")]
    assert "readonly seq?: number | null;" in envelope
    assert "readonly session: string;" in envelope
    assert "readonly event: Event;" in envelope


def test_every_name_that_is_used_is_there() -> None:
    types = typescript_types()
    made = set(re.findall(r"export (?:interface|type|const) (\w+)", types))
    used = set(re.findall(r"readonly \w+\??: (?:readonly )?\(?([A-Z]\w+)", types))
    assert used - {"Readonly"} <= made
    shapes = typescript_shapes() + typescript_later()
    rows = re.findall(r'^  (\w+): "(.+)",$', shapes, re.MULTILINE)
    named = {word for _, row in rows for word in re.findall(r"(?:^|:| )([A-Z]\w+)", row)}
    assert {"Event", "ViewAnswer", "Artifact"} <= named | {name for name, _ in rows}
    assert named <= {name for name, _ in rows}
    assert len({name for name, _ in rows}) == len(rows), "a row stands in one file alone"


def test_a_shape_is_written_as_a_word_for_each_field() -> None:
    shapes = typescript_shapes()
    assert '  Image: "type=image media_type data?:| file?:|",' in shapes
    assert '  SessionRows: "sessions:SessionInfo[]",' in typescript_later()
    assert " answers:[]{} " in typescript_later()


def test_what_is_only_sent_needs_no_shape() -> None:
    assert "interface SendResult" in typescript_types()
    assert "SendResult" not in typescript_shapes() + typescript_later()


def test_a_name_that_python_reserves_goes_by_its_wire_name() -> None:
    types = typescript_types()
    assert "readonly from: string;" in types
    assert "from_" not in types

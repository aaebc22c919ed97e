"""Answers of a given type (A4.60)."""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast, overload

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.schema import describe_schema, read_parameters
from towline_protocol import UsageError

__all__ = ["OutputSpec"]

_T = TypeVar("_T")
_Kind = TypeVar("_Kind")

_VALUE: Final = "value"
"""The one property of the object that holds an answer which is no object."""
_NAME: Final = "answer"
_DEFINITIONS: Final = "#/$defs/"
_JSON_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class OutputSpec(msgspec.Struct, Generic[_T], frozen=True, kw_only=True):
    """The type that an answer should have, told to a model and read back.

    ```python
    spec = OutputSpec.of(Invoice)
    request = msgspec.structs.replace(request, output=spec.schema)
    invoice = spec.parse(text)
    ```
    """

    schema: dict[str, Any]
    """JSON Schema for the provider: an object that allows nothing else, all of it required, as the
    strict modes want it. An answer that is no object stands in `value`."""
    wrapped: bool
    """Whether it stands there."""
    _exact: dict[str, Any]
    _check: Callable[[str], dict[str, Any]]

    @overload
    @classmethod
    def of(cls, kind: type[_Kind]) -> "OutputSpec[_Kind]": ...

    @overload
    @classmethod
    def of(cls, kind: Any) -> "OutputSpec[Any]": ...

    @classmethod
    def of(cls, kind: Any) -> "OutputSpec[Any]":
        """The spec of a type.

        Args:
            kind: A dataclass, msgspec struct, TypedDict, pydantic model, `Literal`, a JSON type, or
                a list, dict or union of these.

        Raises:
            UsageError: JSON can't hold such a value.
        """

        def answer(value: object) -> None: ...

        answer.__annotations__[_VALUE] = kind
        try:
            parameters = read_parameters(answer, _NAME)
        except (UsageError, NameError) as error:  # of a type named in quotes that is not there
            raise UsageError(
                f"An answer can't be of type {kind!r}; use JSON types, dataclasses, msgspec "
                "structs, TypedDicts, pydantic models, `Literal`, or lists and unions of these."
            ) from error
        root = _unwrap(parameters.schema)
        return OutputSpec(
            schema=_tighten(root or parameters.schema, all_required=True),
            wrapped=root is None,
            _exact=_tighten(parameters.schema, all_required=False),
            _check=parameters.check,
        )

    @property
    def instruction(self) -> str:
        """What to tell a model whose provider takes no schema."""
        import json  # as below

        return (
            "Your final answer must be one JSON object that fits this JSON Schema, and nothing "
            f"else, no words and no code fence:\n{json.dumps(self.schema, ensure_ascii=False)}"
        )

    def parse(self, text: str) -> _T:
        """The value that an answer holds: as JSON alone, in a code fence, or after words.

        Raises:
            ToolInputInvalid: There is none that fits; the message says what was expected.
        """
        import json  # for whoever wants a typed answer, not for all who import the library

        from towline_agent.tools.answer import BrokenOff, find_values

        problem, whole = "it holds no JSON", True
        try:
            for candidate in find_values(text):
                try:
                    return self._read(candidate)
                except ToolInputInvalid as error:
                    problem = error.message
        except BrokenOff as error:
            problem, whole = str(error), False
        if whole or self._exact["properties"][_VALUE].get("type") == "string":
            try:  # words alone are an answer where words are wanted
                return self._convert(json.dumps(text.strip()))
            except ToolInputInvalid:
                pass
        raise ToolInputInvalid(
            f"The answer does not fit: {problem.rstrip('.')}. "
            f"Expected: {describe_schema(self.schema)}."
        )

    def ask_again(self, error: ToolInputInvalid) -> str:
        """What to tell a model, once, after `parse` raised."""
        return f"{error.message} {self.instruction}"

    def _read(self, text: str) -> _T:
        if not self.wrapped or not text.startswith("{"):
            return self._convert(text)
        try:
            return self._convert(text, bare=False)
        except ToolInputInvalid as error:
            try:
                return self._convert(text)
            except ToolInputInvalid:
                raise error from error.__cause__

    def _convert(self, text: str, *, bare: bool = True) -> _T:
        from towline_agent.tools.arguments import parse_arguments
        from towline_agent.tools.mismatch import find_mismatch

        whole = f'{{"{_VALUE}": {text}}}' if bare else text
        try:
            raw = parse_arguments(whole)
            problem = find_mismatch(self._exact, raw)
            if problem is None:
                return cast("_T", self._check(whole)[_VALUE])
        except ToolInputInvalid as error:
            problem = str(error.__cause__ or error.message)
        except RecursionError:
            problem = "it is nested too deeply"
        raise ToolInputInvalid(problem if self.wrapped else problem.replace(f"$.{_VALUE}", "$"))


def _unwrap(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of the value itself when it is an object with properties; else `None`."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    value: dict[str, Any] = schema["properties"][_VALUE]
    pointer = value.get("$ref")
    if isinstance(pointer, str):
        value = definitions[pointer.removeprefix(_DEFINITIONS)]
    if value.get("type") != "object" or "properties" not in value:
        return None
    others = {
        name: definition
        for name, definition in definitions.items()
        if f"{_DEFINITIONS}{name}" != pointer or pointer in _pointers(definitions)
    }
    return {**value, "$defs": others} if others else value


def _pointers(node: Any) -> set[str]:
    if isinstance(node, list):
        return set[str]().union(*map(_pointers, cast("list[Any]", node)))
    if not isinstance(node, dict):
        return set()
    known = cast("dict[str, Any]", node)
    found = set[str]().union(*map(_pointers, known.values()))
    return found | {known["$ref"]} if isinstance(known.get("$ref"), str) else found


def _tighten(node: Any, *, all_required: bool) -> Any:
    """A schema whose objects allow nothing else, in the words that the strict modes know.

    Args:
        node: The schema.
        all_required: Whether every property is asked for, also those with a default.
    """
    if not isinstance(node, dict):
        return node
    known = cast("dict[str, Any]", node)
    if "$ref" in known:
        return {"$ref": known["$ref"]}
    kept = {key: value for key, value in known.items() if key not in ("default", "discriminator")}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    for keyword in kept.keys() & {"properties", "$defs"}:
        inner = cast("dict[str, Any]", kept[keyword])
        kept[keyword] = {
            name: _tighten(one, all_required=all_required) for name, one in inner.items()
        }
    for keyword in kept.keys() & {"anyOf", "allOf", "prefixItems"}:
        kept[keyword] = [_tighten(one, all_required=all_required) for one in kept[keyword]]
    for keyword in kept.keys() & {"items", "additionalProperties"}:
        kept[keyword] = _tighten(kept[keyword], all_required=all_required)
    return _name_types(kept) if "enum" in kept else _close(kept, all_required=all_required)


def _close(schema: dict[str, Any], *, all_required: bool) -> dict[str, Any]:
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
        if all_required:
            schema["required"] = list(schema["properties"])
    return schema


def _name_types(schema: dict[str, Any]) -> dict[str, Any]:
    """An `enum` with the type of its values, which some providers ask for."""
    values: list[object] = schema["enum"]
    types = {_JSON_TYPES.get(type(value)) for value in values}
    if len(types) == 1 and None not in types:
        schema.setdefault("type", types.pop())
    return schema

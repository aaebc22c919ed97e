"""A function's parameters as JSON Schema, and JSON as its arguments (A4.57)."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, cast, get_args, get_origin

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.arguments import parse_arguments
from towline_agent.tools.docstring import parse_docstring
from towline_agent.tools.tool import ToolContext
from towline_protocol import UsageError

__all__ = ["Parameters", "describe_schema", "misfit", "read_parameters"]

_STRUCT: Final = "Arguments"
_REFERENCE: Final = "#/$defs/{name}"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
"""What every provider takes as a parameter's name."""
_OUTLINE_CHARS: Final = 500
"""Of what a tool expects, told to a model whose call did not fit."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes."""

    schema: dict[str, Any]
    """JSON Schema of the arguments, an object that allows nothing else."""
    takes_context: bool
    """Whether its first parameter is the `ToolContext`, which the model is not told of."""
    check: Callable[[str], dict[str, Any]]
    """JSON text to arguments by name, of the annotated types, defaults filled in."""


def read_parameters(function: Callable[..., Any], tool: str) -> Parameters:
    """Read a function's signature and docstring.

    Args:
        function: The function. Its first parameter may be annotated `ToolContext`.
        tool: The tool's name, for messages.

    Raises:
        UsageError: A parameter can't be told to a model.
    """
    found = _signature(function, tool)
    takes_context = bool(found) and found[0].annotation is ToolContext
    kept = found[1:] if takes_context else found
    for parameter in kept:
        _check_parameter(parameter, tool)
    struct = _make_struct(kept)
    schema = _make_schema(struct, tool)
    _decorate(schema, kept, parse_docstring(inspect.getdoc(function)).parameters)
    return Parameters(
        schema=schema, takes_context=takes_context, check=_checker(struct, schema, tool)
    )


def misfit(tool: str, problem: str, schema: dict[str, Any]) -> ToolInputInvalid:
    """The error for arguments that do not fit: what came, and what was expected (A4.17)."""
    return ToolInputInvalid(
        f"The arguments of {tool} do not fit: {problem.rstrip('.')}. "
        f"Expected: {describe_schema(schema)}."
    )


def describe_schema(schema: dict[str, Any]) -> str:
    """A schema in one line, such as `{path: string, start?: integer}`."""
    required = schema.get("required", [])
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    parts = [
        f"{name}{'' if name in required else '?'}: {_describe_type(kind)}"
        for name, kind in properties.items()
    ]
    text = f"{{{', '.join(parts)}}}"
    return text if len(text) <= _OUTLINE_CHARS else f"{text[:_OUTLINE_CHARS]}…"


def _describe_type(kind: Any) -> str:
    if not isinstance(kind, dict):
        return "any"
    known = cast("dict[str, Any]", kind)
    if "enum" in known:
        return " | ".join(repr(value) for value in known["enum"])
    if "anyOf" in known:
        return " | ".join(_describe_type(option) for option in known["anyOf"])
    words: Any = known.get("type", "object" if "$ref" in known else "any")
    return " | ".join(cast("list[str]", words)) if isinstance(words, list) else str(words)


def _signature(function: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except (NameError, AttributeError, TypeError, ValueError, SyntaxError) as error:
        raise UsageError(
            f"The signature of tool {tool!r} can't be read ({error}); annotate it with types that "
            "are known where the function is defined."
        ) from error


def _check_parameter(parameter: inspect.Parameter, tool: str) -> None:
    name = parameter.name
    if parameter.annotation is ToolContext:
        raise UsageError(f"Tool {tool!r}: make the ToolContext {name!r} the first parameter.")
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise UsageError(
            f"Tool {tool!r}: a model can't fill parameter {name!r}; each parameter needs a name "
            "that it can be passed by, so no `*args`, `**kwargs` and no `/`."
        )
    if re.fullmatch(_NAME, name) is None:
        raise UsageError(
            f"Tool {tool!r}: parameter {name!r} needs a name of 64 letters, digits and `_` at most."
        )


def _make_struct(parameters: list[inspect.Parameter]) -> type[msgspec.Struct]:
    """The arguments as one type, so that msgspec makes the schema and reads the values."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        kind: Any = Any if parameter.annotation is parameter.empty else parameter.annotation
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, _default(parameter.default)))
    return msgspec.defstruct(_STRUCT, fields, kw_only=True, forbid_unknown_fields=True)


def _default(value: object) -> Any:
    """The very object of the signature, as if the argument were left out in Python."""
    return msgspec.field(default_factory=lambda: value)


def _make_schema(struct: type[msgspec.Struct], tool: str) -> dict[str, Any]:
    try:
        _, components = msgspec.json.schema_components(
            [struct], schema_hook=_foreign_schema, ref_template=_REFERENCE
        )
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"Tool {tool!r} has a parameter whose type can't be told to a model ({reason}); use "
            "JSON types, dataclasses, msgspec structs, pydantic models, `Literal` or unions."
        ) from error
    definitions: dict[str, Any] = {}
    for name, component in components.items():
        definitions[name] = _hoist(component, definitions, tool)
    schema = definitions.pop(_STRUCT)
    schema.setdefault("properties", {})
    schema.setdefault("required", [])
    if definitions:
        schema["$defs"] = definitions
    return schema


def _foreign_schema(kind: Any) -> dict[str, Any]:
    """The schema of a pydantic model; told by its methods, so that pydantic is never imported."""
    if not (hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")):
        raise TypeError(f"{kind!r} is no type that JSON can hold")
    return kind.model_json_schema()


def _foreign_value(kind: Any, value: object) -> Any:
    try:
        return kind.model_validate(value)
    except ValueError as error:
        raise ValueError(_brief(error)) from error


def _brief(error: Exception) -> str:
    """The lines of a pydantic error without the values and addresses in them."""
    details: Any = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    found = cast("list[dict[str, Any]]", details())
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc']) or 'value'}: {one['msg']}" for one in found
    )


def _hoist(node: Any, definitions: dict[str, Any], tool: str) -> Any:
    """A schema without titles, its inner `$defs` moved to the one place references point at."""
    if isinstance(node, list):
        return [_hoist(item, definitions, tool) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    kept = dict(cast("dict[str, Any]", node))
    if isinstance(kept.get("title"), str):
        del kept["title"]
    inner: Any = kept.pop("$defs", None)
    if isinstance(inner, dict):
        for name, definition in cast("dict[str, Any]", inner).items():
            plain = _hoist(definition, definitions, tool)
            if definitions.setdefault(name, plain) != plain:
                raise UsageError(f"Tool {tool!r} uses two types called {name!r}; rename one.")
    return {key: _hoist(value, definitions, tool) for key, value in kept.items()}


def _decorate(
    schema: dict[str, Any], parameters: list[inspect.Parameter], words: dict[str, str]
) -> None:
    """Add what the struct does not know: descriptions and defaults."""
    for parameter in parameters:
        known: dict[str, Any] = schema["properties"][parameter.name]
        text = words.get(parameter.name) or _annotated_text(parameter.annotation)
        if text:
            known.setdefault("description", text)
        if parameter.default is not parameter.empty and parameter.default is not None:
            try:
                known["default"] = msgspec.to_builtins(parameter.default)
            except TypeError:
                continue  # a default that JSON can't hold is still used, only not told


def _annotated_text(annotation: Any) -> str:
    """The text of `Annotated[int, "how many"]`."""
    if get_origin(annotation) is not Annotated:
        return ""
    return next((word for word in get_args(annotation)[1:] if isinstance(word, str)), "")


def _checker(
    struct: type[msgspec.Struct], schema: dict[str, Any], tool: str
) -> Callable[[str], dict[str, Any]]:
    def check(text: str) -> dict[str, Any]:
        raw = parse_arguments(text)
        try:
            value = msgspec.convert(raw, struct, dec_hook=_foreign_value)
        except msgspec.ValidationError as error:
            raise misfit(tool, str(error), schema) from error
        return {name: getattr(value, name) for name in struct.__struct_fields__}

    return check

"""A function's parameters as JSON Schema, and JSON as its arguments."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, cast, get_args, get_origin

import msgspec

from towline_protocol.errors import UsageError
from towline_protocol.functions.docstring import parse_docstring

__all__ = ["Signature", "read_signature"]

_STRUCT: Final = "Arguments"
_REFERENCE: Final = "#/$defs/{name}"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
"""What every provider takes as a parameter's name."""
_RECEIVERS: Final = frozenset({"self", "cls"})


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes, as a model is told of it."""

    schema: dict[str, Any]
    """JSON Schema of the arguments, an object that allows nothing else."""
    summary: str
    """The docstring's words before its sections."""
    takes_context: bool
    """Whether its first parameter is the context, which the model is not told of."""
    arguments: type[msgspec.Struct]
    """The arguments as one type."""

    def fill(self, raw: object) -> dict[str, Any]:
        """Arguments by name, of the annotated types, defaults filled in.

        Args:
            raw: What stood in the JSON.

        Raises:
            msgspec.ValidationError: They do not fit.
        """
        value = msgspec.convert(raw, self.arguments, dec_hook=_foreign_value)
        return {name: getattr(value, name) for name in self.arguments.__struct_fields__}


def read_signature(function: Callable[..., Any], tool: str, *, context: type) -> Signature:
    """Read a function's signature and docstring.

    Args:
        function: The function.
        tool: The tool's name, for messages.
        context: The type that its first parameter may be annotated with.

    Raises:
        UsageError: A parameter can't be told to a model.
    """
    found = _signature(function, tool)
    takes_context = bool(found) and found[0].annotation is context
    kept = found[1:] if takes_context else found
    if kept and kept[0].name in _RECEIVERS and kept[0].annotation is kept[0].empty:
        raise UsageError(
            f"Tool {tool!r} is the function of a class and takes {kept[0].name!r}; give the method "
            "of an object."
        )
    for parameter in kept:
        _check_parameter(parameter, tool, context)
    words = parse_docstring(inspect.getdoc(function))
    struct = _make_struct(kept)
    schema = _make_schema(struct, tool)
    _decorate(schema, kept, words.parameters)
    return Signature(
        schema=schema, summary=words.summary, takes_context=takes_context, arguments=struct
    )


def _signature(function: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except (NameError, AttributeError, TypeError, ValueError, SyntaxError) as error:
        raise UsageError(
            f"The signature of tool {tool!r} can't be read ({error}); annotate it with types that "
            "are known where the function is defined."
        ) from error


def _check_parameter(parameter: inspect.Parameter, tool: str, context: type) -> None:
    name = parameter.name
    if parameter.annotation is context:
        raise UsageError(
            f"Tool {tool!r}: make the {context.__name__} {name!r} the first parameter."
        )
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

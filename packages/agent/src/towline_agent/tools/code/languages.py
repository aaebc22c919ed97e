"""What each grammar calls the things that have a name."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["GRAMMARS", "SUFFIXES", "Grammar"]


class Grammar(NamedTuple):
    """One language, as tree-sitter tells it."""

    module: str
    """The module of its wheel."""
    kinds: Mapping[str, str]
    """Node type to the kind of symbol that it defines; its name stands in the field `name`."""
    through: frozenset[str]
    """Node types that may hold definitions; all others are passed over."""
    maker: str = "language"
    """The module's function that gives the grammar."""


_JS_KINDS: Final = {
    "class": "class",
    "class_declaration": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "method_definition": "method",
    "variable_declarator": "variable",
    "field_definition": "field",
    "pair": "",
    "assignment_expression": "",
}
"""An empty kind counts only where the value is a function or a class."""

_JS_THROUGH: Final = frozenset(
    """program export_statement class_declaration class class_body method_definition
    function_declaration generator_function_declaration statement_block lexical_declaration
    variable_declaration variable_declarator if_statement else_clause try_statement catch_clause
    finally_clause expression_statement assignment_expression call_expression arguments
    arrow_function function_expression parenthesized_expression object pair return_statement
    field_definition""".split()
)

_TS_KINDS: Final = {
    **_JS_KINDS,
    "abstract_class_declaration": "class",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "module",
    "module": "module",
    "function_signature": "function",
    "method_signature": "method",
    "abstract_method_signature": "method",
    "public_field_definition": "field",
}

_TS_THROUGH: Final = _JS_THROUGH | frozenset(
    """abstract_class_declaration interface_declaration interface_body object_type internal_module
    module ambient_declaration public_field_definition as_expression satisfies_expression""".split()
)

GRAMMARS: Final = {
    "python": Grammar(
        "tree_sitter_python",
        {
            "class_definition": "class",
            "function_definition": "function",
            "assignment": "variable",
            "type_alias_statement": "type",
        },
        frozenset(
            """module block class_definition function_definition decorated_definition if_statement
            elif_clause else_clause try_statement except_clause except_group_clause finally_clause
            with_statement for_statement while_statement match_statement case_clause
            expression_statement""".split()
        ),
    ),
    "javascript": Grammar("tree_sitter_javascript", _JS_KINDS, _JS_THROUGH),
    "typescript": Grammar(
        "tree_sitter_typescript", _TS_KINDS, _TS_THROUGH, maker="language_typescript"
    ),
    "tsx": Grammar("tree_sitter_typescript", _TS_KINDS, _TS_THROUGH, maker="language_tsx"),
    "go": Grammar(
        "tree_sitter_go",
        {
            "function_declaration": "function",
            "method_declaration": "method",
            "type_spec": "type",
            "type_alias": "type",
            "method_elem": "method",
            "const_spec": "constant",
            "var_spec": "variable",
        },
        frozenset(
            """source_file type_declaration type_spec interface_type const_declaration
            var_declaration var_spec_list""".split()
        ),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        {
            "function_item": "function",
            "function_signature_item": "function",
            "struct_item": "struct",
            "union_item": "struct",
            "enum_item": "enum",
            "trait_item": "trait",
            "type_item": "type",
            "associated_type": "type",
            "mod_item": "module",
            "macro_definition": "macro",
            "const_item": "constant",
            "static_item": "variable",
        },
        frozenset(
            """source_file declaration_list mod_item impl_item trait_item function_item block
            foreign_mod_item""".split()
        ),
    ),
    "java": Grammar(
        "tree_sitter_java",
        {
            "class_declaration": "class",
            "record_declaration": "class",
            "interface_declaration": "interface",
            "annotation_type_declaration": "interface",
            "enum_declaration": "enum",
            "method_declaration": "method",
            "constructor_declaration": "method",
            "enum_constant": "constant",
            "variable_declarator": "field",
        },
        frozenset(
            """program class_declaration class_body record_declaration interface_declaration
            interface_body annotation_type_declaration annotation_type_body enum_declaration
            enum_body enum_body_declarations field_declaration constant_declaration""".split()
        ),
    ),
}
"""Each language by its name."""

SUFFIXES: Final = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
}
"""The language of a file by the end of its name."""

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
    "pair": "",
    "assignment_expression": "",
}
"""An empty kind counts only where the value is a function or a class."""

_JS_THROUGH: Final = frozenset(
    {
        "arguments",
        "arrow_function",
        "assignment_expression",
        "call_expression",
        "catch_clause",
        "class",
        "class_body",
        "class_declaration",
        "else_clause",
        "export_statement",
        "expression_statement",
        "finally_clause",
        "function_declaration",
        "function_expression",
        "generator_function_declaration",
        "if_statement",
        "lexical_declaration",
        "method_definition",
        "object",
        "pair",
        "parenthesized_expression",
        "program",
        "return_statement",
        "statement_block",
        "try_statement",
        "variable_declaration",
        "variable_declarator",
    }
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
    {
        "abstract_class_declaration",
        "ambient_declaration",
        "as_expression",
        "interface_body",
        "interface_declaration",
        "internal_module",
        "module",
        "object_type",
        "public_field_definition",
        "satisfies_expression",
    }
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
            {
                "block",
                "case_clause",
                "class_definition",
                "decorated_definition",
                "elif_clause",
                "else_clause",
                "except_clause",
                "expression_statement",
                "finally_clause",
                "for_statement",
                "function_definition",
                "if_statement",
                "match_statement",
                "module",
                "try_statement",
                "while_statement",
                "with_statement",
            }
        ),
    ),
    "javascript": Grammar(
        "tree_sitter_javascript",
        {**_JS_KINDS, "field_definition": "field"},
        _JS_THROUGH | {"field_definition"},
    ),
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
            {
                "const_declaration",
                "interface_type",
                "source_file",
                "type_declaration",
                "type_spec",
                "var_declaration",
                "var_spec_list",
            }
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
            {
                "block",
                "declaration_list",
                "foreign_mod_item",
                "function_item",
                "impl_item",
                "mod_item",
                "source_file",
                "trait_item",
            }
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
            {
                "annotation_type_body",
                "annotation_type_declaration",
                "class_body",
                "class_declaration",
                "constant_declaration",
                "enum_body",
                "enum_body_declarations",
                "enum_declaration",
                "field_declaration",
                "interface_body",
                "interface_declaration",
                "program",
                "record_declaration",
            }
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

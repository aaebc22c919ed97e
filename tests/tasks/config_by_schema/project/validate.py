"""Holds a JSON file against a schema: validate.py FILE SCHEMA"""

import json
import sys

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}


def faults(value, schema, place="$"):
    """What is wrong with a value, one line each."""
    kind = schema.get("type")
    if kind and (not isinstance(value, KINDS[kind]) or isinstance(value, bool)):
        return [f"{place}: {value!r} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is none of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{place}: {value!r} is less than {schema['minimum']}")
    if "maximum" in schema and value > schema["maximum"]:
        found.append(f"{place}: {value!r} is more than {schema['maximum']}")
    if kind == "object":
        known = schema.get("properties", {})
        found += [f"{place}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, part in value.items():
            if name in known:
                found += faults(part, known[name], f"{place}.{name}")
            elif not schema.get("additionalProperties", True):
                found.append(f"{place}: {name} is not known")
    if kind == "array":
        for number, part in enumerate(value):
            found += faults(part, schema["items"], f"{place}[{number}]")
    return found


if __name__ == "__main__":
    config, schema = (json.load(open(name)) for name in sys.argv[1:3])
    lines = faults(config, schema)
    print("\n".join(lines) or "valid")
    sys.exit(1 if lines else 0)

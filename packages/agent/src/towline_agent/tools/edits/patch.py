"""Reading a patch, in either of the two forms that models write (A5.12).

The envelope:

```
*** Begin Patch
*** Update File: src/a.py
@@ def main():
 context
-old
+new
*** Add File: src/b.py
+first line
*** Delete File: src/c.py
*** End Patch
```

And the unified diff, as `diff -u` and `git diff` write it.
"""

from typing import Final

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.edits.envelope import read_envelope
from towline_agent.tools.edits.hunk import FilePatch
from towline_agent.tools.edits.unified import read_unified

__all__ = ["FILES_MAX", "parse_patch"]

FILES_MAX: Final = 200
"""Files of one patch; more is a job for a program."""


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """What a patch does, file by file.

    Raises:
        ToolInputInvalid: It can't be read; the message names the line.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("*** "):
        found = read_envelope(lines)
    elif first.startswith(("--- ", "diff ", "Index: ")):
        found = read_unified(lines)
    else:
        raise ToolInputInvalid(
            f"A patch can't begin with {first[:80]!r}; begin it with '*** Begin Patch', or with "
            "'--- a/path' and '+++ b/path' of a unified diff."
        )
    if not found:
        raise ToolInputInvalid("The patch changes nothing; name at least one file.")
    if len(found) > FILES_MAX:
        raise ToolInputInvalid(f"The patch has {len(found)} files, and {FILES_MAX} is the most.")
    return found

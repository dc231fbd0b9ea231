"""Sees to it that `import loadgen` finds the package, not this folder of the same name.

pytest puts tests/unit on sys.path for the tests there, where this folder passes for a namespace package; and that path
is searched before the finder of an editable install is asked. A package with an `__init__.py` wins wherever it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))

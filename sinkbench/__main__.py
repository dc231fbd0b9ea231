"""`python -m sinkbench` is `sinkbench`."""

from __future__ import annotations

import sys

from sinkbench.cli import main

sys.exit(main())

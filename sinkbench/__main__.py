"""`python -m sinkbench` is `sinkbench`."""

from __future__ import annotations

import sys

from sinkbench.cli.main import main

sys.exit(main())

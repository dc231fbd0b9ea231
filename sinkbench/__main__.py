"""`python -m sinkbench` is `sinkbench`."""

import sys

from sinkbench.cli.main import main

sys.exit(main())

from __future__ import annotations

import os

# What only root can show, the staged box and the change of user, is asked of root alone.
collect_ignore = [] if os.geteuid() == 0 else ["test_as_root.py", "test_ownership.py"]

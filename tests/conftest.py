"""What tests of every room share: the real sales files beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

REAL_FILES = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real sales files. They may not be redistributed, so they are read where they lie or not at all."""
    if not REAL_FILES.is_dir():
        pytest.skip("the real sales files are not beside this checkout (../shared/data)")
    return REAL_FILES

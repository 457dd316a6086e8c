"""Tell how much memory this process took at most since a moment: the kernel's own high-water mark."""

from __future__ import annotations

import sys
from pathlib import Path

from core.environment import resident_bytes

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def forget_peak() -> bool:
    """Start counting the peak anew. False where the system cannot: then the peak is that of the whole process."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_bytes() -> int:
    """Most host memory held since `forget_peak`, in bytes."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return _peak_of_process()


def _peak_of_process() -> int:
    try:
        import resource
    except ImportError:
        return resident_bytes()
    peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if sys.platform == "darwin" else peak * 1024

"""Exit statuses of commands, and the sentences that go with those of commands that could not do their work."""

from __future__ import annotations

import sys
from collections.abc import Callable

from core.cli.problems import say_problems
from core.errors import Problem, UserError

DONE, UNUSABLE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Done; a fit without a usable posterior; the input is at fault; stopped by Ctrl-C: what was kept is said."""


def status_of(work: Callable[[], int]) -> int:
    """The exit status of `work`; where it breaks off for a known reason, says on stderr why and what to do."""
    try:
        return work()
    except UserError as error:
        say_problems(error.problems)
    except OSError as error:
        say_problems([_file_problem(error)])
    except MemoryError:
        say_problems([Problem("memory", "The memory does not suffice", "Close other programs, or ask for less.")])
    except KeyboardInterrupt:
        print("Interrupted: nothing was written.", file=sys.stderr)
        return INTERRUPTED
    return BAD_INPUT


def _file_problem(error: OSError) -> Problem:
    remedy = "Check the path, its permissions and the free space, then run the command again."
    return Problem("file", error.strerror or str(error), remedy, where=str(error.filename or ""))

"""raison: why did a language model predict this, and can you trust the answer?

A model is asked two questions: *trace* (run forward and backward once and show what happened inside) and
*score* (how likely is the target when only these tokens are kept?). Everything else follows from the answers.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raison.api import explain as explain
    from raison.api import ground as ground
    from raison.api import load as load
    from raison.api import ls as ls
    from raison.api import rationalize as rationalize
    from raison.core.errors import RaisonError as RaisonError
    from raison.core.records import Example as Example
    from raison.core.records import Explanation as Explanation
    from raison.studies.evaluate_methods import evaluate as evaluate

__version__ = "0.1.0"
__all__ = [
    "Example",
    "Explanation",
    "RaisonError",
    "evaluate",
    "explain",
    "ground",
    "load",
    "ls",
    "rationalize",
]

# Names are fetched on first use, so that `import raison` and `raison --help` need neither torch nor transformers.
_HOMES = {
    "evaluate": "raison.studies.evaluate_methods",
    "explain": "raison.api",
    "ground": "raison.api",
    "load": "raison.api",
    "ls": "raison.api",
    "rationalize": "raison.api",
    "Example": "raison.core.records",
    "Explanation": "raison.core.records",
    "RaisonError": "raison.core.errors",
}


def _notebook() -> None:
    """In a notebook results show themselves; nothing is imported for it anywhere else."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        from raison.show.notebook import show_in_notebooks

        show_in_notebooks(shell)


_notebook()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'raison' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

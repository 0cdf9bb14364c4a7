"""Places in the repository."""

from pathlib import Path

__all__ = ["RECIPES", "ROOT", "SOURCE"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "raison"
RECIPES = ROOT / "recipes"

"""The main job on the embedded defaults: why a language model and a classifier say what they say.

python examples/demo.py --out out
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from raison.cli.guard import guarded
from raison.cli.progress import waiting
from raison.core.outputs import check_outputs, replacing_output

PROMPT = "The Supreme Court on Tuesday rejected a challenge to the"
REVIEW = "The jokes are stale and the pacing is dull, but the ending is a wonderful surprise."
QUESTION = "What colour is the lighthouse?"
PASSAGES = {
    "lighthouse.txt": "The lighthouse on Gull Island was built in 1874. It is painted red and white. "
    "Its lamp can be seen from twenty miles away.",
    "keeper.txt": "Anna Brandt was the last keeper of the lighthouse. She lived there with her two dogs until 1962. "
    "After that the lamp was automated.",
    "ferry.txt": "A ferry leaves for Gull Island every morning at nine. The crossing takes forty minutes. "
    "Tickets are sold on board.",
}


@guarded
def demo(out: Path, force: bool) -> None:
    page = out / "demo.html"
    check_outputs([page], force=force)
    with waiting("loading the libraries") as wait:
        import raison

        wait("opening smollm2 (fetched once)")
        writer = raison.load("smollm2")
        wait("opening sentiment (fetched once)")
        critic = raison.load("sentiment")
        wait("the smallest context that gives the next word")
        rationale = raison.rationalize(writer, PROMPT)
        wait("what an answer rests on")
        answer = raison.ground(writer, QUESTION, PASSAGES)
        wait("scores of words")
        verdict = raison.explain(critic, REVIEW)
        gradient = raison.explain(critic, REVIEW, method="gradient_norm")
    from raison.show import render_many, to_html

    results = [rationale, answer, verdict, gradient]
    render_many(results)
    with replacing_output(page) as half:
        half.write_text(to_html(results, title="raison: a first look"), encoding="utf-8")
    print(f"\nThe same as a page: {page}")
    command = os.path.relpath(Path(sys.executable).parent / "raison")
    print(f'Your own text:      {command} rationalize "…"')
    print(f'                    {command} explain "…" -m smollm2')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument(
        "--force", action="store_true", help="replace the page that is there already"
    )
    arguments = parser.parse_args()
    demo(arguments.out, arguments.force)

"""Requests into work: each function takes a body and gives back what a worker thread has to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from raison import api
from raison.core.errors import InputError
from raison.core.json_record import plain
from raison.core.records import Example, Explanation
from raison.core.registry import methods, rules, searches
from raison.core.spec import Spec
from raison.models.protocol import Model, TargetSpec
from raison.show.html.explanation import finite
from raison.show.html.page_data import page_data
from raison.studies.trust import method_of, trust
from raison.studies.what_if import heads_of, muted, without
from raison.web import schemas
from raison.web.settings import Settings
from raison.web.snippet import snippet

__all__ = ["Asking"]

Work = Callable[[], dict[str, Any]]


class Asking:
    """The models that were named at the start, and what may be asked about them."""

    def __init__(self, models: Mapping[str, Model], settings: Settings):
        self.models, self.settings = models, settings

    # -- limits ------------------------------------------------------------------------------------

    def model(self, name: str) -> Model:
        if name not in self.models:
            raise InputError(f"There is no model called {name[:80]!r} here: use one of {', '.join(self.models)}.")
        return self.models[name]

    def example(self, *texts: str | None) -> None:
        size = sum(len(text) for text in texts if text is not None)
        if size > self.settings.characters:
            raise InputError(
                f"The text has {size} characters, and the server reads {self.settings.characters}: give a shorter one."
            )

    def spec(self, text: str) -> str:
        """A spec whose numbers are within the limits, and that reads no files of this machine."""
        parsed = Spec.parse(text)
        self.look(parsed)
        return str(parsed)

    def look(self, value: Any) -> None:
        if isinstance(value, Spec):
            entry = next((shelf[value.name] for shelf in (methods, searches, rules) if value.name in shelf), None)
            known = getattr(entry, "__dataclass_fields__", {})
            for key, inner in value.params.items():
                if key in known and known[key].metadata.get("file"):
                    raise InputError(f"{key} names a file, and the server reads none for a request: use the library.")
                self.look(inner)
        elif isinstance(value, (tuple, list)):
            for each in value:
                self.look(each)
        elif isinstance(value, str):  # a method inside a search may be written as text
            try:
                inner = Spec.parse(value)
            except InputError:
                return
            if inner.params:
                self.look(inner)
        elif isinstance(value, (int, float)) and abs(value) > self.settings.steps:
            raise InputError(f"{value} is more than the {self.settings.steps} that the server allows: take fewer.")

    def subject(self, body: schemas.Asked) -> tuple[Model, Example, dict[str, Any]]:
        model = self.model(body.model)
        self.example(body.text, body.pair, *(str(each) for each in (body.target, body.contrast)))
        request = {"target": body.target, "contrast": body.contrast, "units": body.units, "removal": body.removal}
        # of a text that is too long the page shows what was read, and the rest in grey
        return model, Example(body.text, body.pair), {**request, "truncate": True}

    # -- questions ---------------------------------------------------------------------------------

    def predict(self, body: schemas.Predict) -> Work:
        model = self.model(body.model)
        self.example(body.text, body.pair)
        example = Example(body.text, body.pair)

        def work() -> dict[str, Any]:
            (encoding,) = model.encode([example], truncate=True)
            (said,) = model.predict([encoding])
            text, value = said.target.text, finite(said.value)
            if model.task == "seq2seq":  # what is explained is a whole translation, not its first token
                text, value = model.resolve_targets(encoding, TargetSpec(prediction=said))[0][1].text, None
            return {
                "encoding": encoding.to_dict(),
                "text": text,
                "value": value,
                "kind": said.target.kind,
                "top": [[name, finite(value)] for name, value in said.top],
                "probable": said.probable,
            }

        return work

    def explain(self, body: schemas.Explain) -> Work:
        model, example, request = self.subject(body)
        if len(body.methods) > self.settings.methods:
            raise InputError(f"The server compares {self.settings.methods} methods at most: choose fewer.")
        specs = list(dict.fromkeys(self.spec(each) for each in body.methods))
        built = [methods.build(each) for each in specs]
        request = {**request, "seed": body.seed}

        def work() -> dict[str, Any]:
            found: list[Explanation] = []
            for each in built:
                told = api.explain(model, example, each, **request)
                found += told if isinstance(told, list) else [told]
            return answer(found, [python("explain", body, (spec,), request, found) for spec in specs])

        return work

    def rationalize(self, body: schemas.Rationalize) -> Work:
        model, example, request = self.subject(body)
        search = self.spec(body.search)
        rule = None if body.sufficient is None else self.spec(body.sufficient)
        chosen = api.build_search(search, rule)
        request = {**request, "generate": body.generate}

        def work() -> dict[str, Any]:
            told = api.rationalize(model, example, chosen, **request)
            asked = {"sufficient": rule, **request}
            found = told if isinstance(told, list) else [told]
            return answer(found, [python("rationalize", body, (search,), asked, found)])

        return work

    def ground(self, body: schemas.Ground) -> Work:
        model = self.model(body.model)
        self.example(body.question, body.answer, *body.passages, *body.passages.values())
        chosen = api.build_search(self.spec(body.search))

        def work() -> dict[str, Any]:
            found = api.ground(model, body.question, body.passages, chosen, answer=body.answer)
            code = snippet(
                "ground", body.model, (body.question, dict(body.passages)),
                {"search": None if body.search == "hierarchical" else body.search, "answer": body.answer},
            )  # fmt: skip
            return answer([found], [code])

        return work

    def trust(self, body: schemas.Trusted) -> Work:
        model, example, request = self.subject(body)
        spec = self.spec(body.method)

        def work() -> dict[str, Any]:
            found = self.explained(model, example, spec, request, body.seed)
            told = trust(model, found, body.seed, body.removal)
            return {"trust": told.to_dict(), "method": found.method}

        return work

    def remove(self, body: schemas.Remove) -> Work:
        model, example, request = self.subject(body)

        def work() -> dict[str, Any]:
            found = self.explained(model, example, "uniform", request)
            return without(model, found, body.removed, body.removal)

        return work

    def heads(self, body: schemas.Heads) -> Work:
        model, example, request = self.subject(body)
        spec = self.spec(body.method)

        def work() -> dict[str, Any]:
            found = self.explained(model, example, spec, request)
            heads = heads_of(model, found)
            if not body.off:
                return {"heads": heads, "statement": "", **drawable([found])}
            without_heads = muted(model, method_of(found), found, body.off)
            statement = statement_of_heads_off(without_heads, len(body.off))
            return {"heads": heads, "statement": statement, **drawable_beside(found, without_heads, body.off)}

        return work

    @staticmethod
    def explained(model: Model, example: Example, spec: str, request: dict[str, Any], seed: int = 0) -> Explanation:
        """One explanation, by a method or a search."""
        if Spec.parse(spec).name in searches:
            found = api.rationalize(model, example, spec, **request)
        else:
            found = api.explain(model, example, spec, **request, seed=seed)
        if isinstance(found, list):
            if len(found) != 1:
                raise InputError("This is about one target: choose one.")
            found = found[0]
        first: Explanation = found
        return first


def drawable(explanations: Sequence[Explanation], *, together: bool = False) -> dict[str, Any]:
    """What the page draws: records, what is said about each, and which are drawn together."""
    data: dict[str, Any] = finite(plain(page_data(explanations, together=together)))
    return data


def drawable_beside(
    explanation: Explanation, without_heads: Explanation, off: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """An explanation beside the same one without some heads, which is named by them."""
    names = ", ".join(f"{row}.{head}" for row, head in off)
    noun = "head" if len(off) == 1 else "heads"
    method = f"{without_heads.method} without {noun} {names}"
    other = replace(without_heads, encoding=explanation.encoding, method=method)
    return drawable([explanation, other], together=True)


def statement_of_heads_off(without_heads: Explanation, count: int) -> str:
    """How far the value of the target moves when heads are switched off."""
    heads = "this head" if count == 1 else f"these {count} heads"
    before = without_heads.diagnostics["value_before"]
    after = without_heads.diagnostics["value_without_heads"]
    return f"With {heads} off: {before:.4g} → {after:.4g}"


def answer(explanations: Sequence[Explanation], code: list[str]) -> dict[str, Any]:
    return {**drawable(explanations), "python": code}


def python(
    verb: str, body: schemas.Asked, more: tuple[Any, ...], request: Mapping[str, Any], found: list[Explanation]
) -> str:
    """The same call in the library."""
    text: Any = body.text if body.pair is None else (body.text, body.pair)
    usual = {"units": "word" if verb == "explain" else None, "seed": 0, "generate": 0}
    if not any(each.encoding.truncated for each in found):
        usual["truncate"] = True
    asked = {key: value for key, value in request.items() if key not in usual or usual[key] != value}
    return snippet(verb, body.model, (text, *more), asked)

"""Greedy and exhaustive rationales, written literally from the paper: an oracle for tests, slow on purpose.

Vafa et al. (2021), "Rationales for Sequential Predictions". Nothing here comes from raison's scoring: a plain
transformers model is called for every candidate set, nothing is reused, and every row goes through the head.

    python tests/oracles/rationales.py    checks the oracle itself
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
import torch

__all__ = [
    "Literal",
    "Step",
    "causal_logits",
    "exhaustive_causal",
    "greedy_causal",
    "greedy_labels",
    "greedy_seq2seq",
    "seq2seq_logits",
]

TOKENS_PER_BATCH = 4096  # the published code's own number
BY_LAYER = (
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3_text",
)  # take a dict with one mask for each kind of layer
IN_ALL_LAYERS = ("mistral", "starcoder2", "phi3")  # one mask, so the window stands in it


class Step(NamedTuple):
    """What one step of the search did."""

    size: int  # tokens in the rationale after the step
    added: int | None  # None: the start of a search that starts empty
    argmax: int | None  # what the model predicts from the rationale; None for labels
    log_prob: float  # of the target
    candidates: dict[
        int, float
    ]  # position → log p of the target with this position added, for all that were tried


class Answer(NamedTuple):
    """What the model says about one candidate set."""

    log_prob: float
    argmax: int | None
    hit: bool  # the argmax is the target


@dataclass
class Literal:
    """A rationale and how it was found."""

    order: list[int] = field(default_factory=list)  # positions as they were added
    reached: bool = False  # the target is the argmax given the rationale
    steps: list[Step] = field(default_factory=list)
    # Σ n·(number of candidates), n tokens kept: what the published code pushes through
    token_forwards: int = 0
    head_rows: int = 0  # rows that really went through the blocks and the head; = token_forwards where mode="sparse"


# -- the search ------------------------------------------------------------------------------------------


def greedy(
    evaluate: Callable[[list[tuple[int, ...]]], list[Answer]],
    given: Sequence[int],
    start: Sequence[int],
    free: Sequence[int],
    limit: int,
    rows: Callable[[tuple[int, ...]], int],
) -> Literal:
    """S ← start; while argmax_v p(v | S) ≠ y:  S ← S ∪ {argmax_k log p(y | S ∪ {k})}, the lowest k of equals.

    What is `given` is in every set and in no rationale; `free` are the candidates.
    """
    found = Literal(order=list(start))

    def ask(sets: list[tuple[int, ...]]) -> list[Answer]:
        found.token_forwards += sum(len(kept) for kept in sets)
        found.head_rows += sum(rows(kept) for kept in sets)
        return evaluate(sets)

    kept = tuple(sorted({*given, *start}))
    answer = ask([kept])[0]
    added = start[0] if start else None
    first = {} if added is None else {added: answer.log_prob}
    found.steps.append(Step(len(start), added, answer.argmax, answer.log_prob, first))
    left = sorted(set(free) - set(kept))
    while not answer.hit and left and len(found.order) < limit:
        answers = ask([tuple(sorted({*kept, k})) for k in left])
        best = 0
        for i in range(len(left)):
            if answers[i].log_prob > answers[best].log_prob:
                best = i
        scores = {k: a.log_prob for k, a in zip(left, answers, strict=True)}
        answer, k = answers[best], left.pop(best)
        kept = tuple(sorted({*kept, k}))
        found.order.append(k)
        found.steps.append(Step(len(found.order), k, answer.argmax, answer.log_prob, scores))
    found.reached = answer.hit
    return found


def read(row: torch.Tensor, target: int) -> Answer:
    """log p(y) and argmax_v p(v) of one row of logits [v]; the lowest id of equals."""
    log_prob = float(row.log_softmax(-1)[target])
    if np.isnan(log_prob):
        raise ValueError("the model answers NaN")
    argmax = int((row == row.max()).nonzero()[0])
    return Answer(log_prob, argmax, argmax == target)


def split(free: Any, size: int, start: int) -> tuple[list[int], list[int]]:
    """Positions before `size` that are given and that are free, where `free` [≥size] says what may be removed."""
    may = np.ones(size, bool) if free is None else np.asarray(free, bool)[:size]
    if len(may) != size:
        raise ValueError(f"free has {len(may)} entries for {size} positions")
    others = [k for k in range(size) if k != start]
    return [k for k in others if not may[k]], [k for k in others if may[k]]


@contextmanager
def attention_of(hf: Any, name: str | None) -> Iterator[None]:
    """Run with transformers' attention of this name (None: as it is), and give the model back as it was."""
    before = hf.config._attn_implementation
    if name is not None:
        hf.set_attn_implementation(name)
    try:
        with torch.no_grad():
            yield
    finally:
        if name is not None:
            hf.set_attn_implementation(before)


# -- decoder-only models ---------------------------------------------------------------------------------


def additive(see: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """0 where a row sees a key, -inf elsewhere: [b s t] → [b 1 s t]."""
    return torch.zeros(see.shape, dtype=dtype, device=see.device).masked_fill(~see, -torch.inf)[
        :, None
    ]


def causal_see(positions: torch.Tensor, kept: torch.Tensor, window: int | None) -> torch.Tensor:
    """Row i sees key j where p_j ≤ p_i, j is kept and p_i − p_j < window; and itself. p [b t]: original positions."""
    distance = positions[:, :, None] - positions[:, None, :]
    see = (distance >= 0) & kept[:, None, :]
    if window is not None:
        see = see & (distance < window)
    return see | (distance == 0)


def causal_mask(hf: Any, positions: torch.Tensor, kept: torch.Tensor) -> Any:
    """The explicit 4-D masks of a family; nothing is left to transformers (methods.md 0.1)."""
    config = hf.config
    window = getattr(config, "sliding_window", None)
    if config.model_type in BY_LAYER:
        windows = {"full_attention": None, "sliding_attention": window}
        return {
            kind: additive(causal_see(positions, kept, windows[kind]), hf.dtype)
            for kind in config.layer_types
        }
    if window is not None and config.model_type not in IN_ALL_LAYERS:
        raise ValueError(f"how does {config.model_type} use its window of {window} tokens?")
    return additive(causal_see(positions, kept, window), hf.dtype)


def causal_logits(
    hf: Any, ids: Sequence[int], sets: Sequence[Sequence[int]], mode: str = "full"
) -> torch.Tensor:
    """[n s v] logits of all rows; the last row is p(· | y_S) for each set S, all equally large, ending in one position.

    full: all tokens up to the last run and removed keys are hidden; sparse: only the kept tokens run.
    Both at original positions.
    """
    tokens = torch.tensor(list(ids), device=hf.device)
    if mode == "sparse":
        positions = torch.tensor([list(kept) for kept in sets], device=hf.device)
        kept = torch.ones_like(positions, dtype=torch.bool)
    elif mode == "full":
        positions = torch.arange(sets[0][-1] + 1, device=hf.device).repeat(len(sets), 1)
        kept = torch.stack(
            [torch.isin(positions[0], torch.tensor(list(s)).to(positions)) for s in sets]
        )
    else:
        raise ValueError(f"no mode {mode!r}: full or sparse")
    mask = causal_mask(hf, positions, kept)
    return hf(
        input_ids=tokens[positions], position_ids=positions, attention_mask=mask, use_cache=False
    ).logits


def causal_answers(
    hf: Any, ids: Sequence[int], target: int, mode: str
) -> Callable[[list], list[Answer]]:
    """Candidate sets of one size → answers, ⌊4096/n⌋ sets in a batch, n tokens each."""

    def evaluate(sets: list[tuple[int, ...]]) -> list[Answer]:
        width = len(sets[0]) if mode == "sparse" else sets[0][-1] + 1
        size = max(1, TOKENS_PER_BATCH // width)
        answers = []
        for i in range(0, len(sets), size):
            answers += [
                read(rows[-1], target) for rows in causal_logits(hf, ids, sets[i : i + size], mode)
            ]
        return answers

    return evaluate


def greedy_causal(
    hf: Any,
    ids: Sequence[int],
    target_position: int,
    *,
    target_id: int | None = None,
    max_steps: int | None = None,
    free: Any = None,
    mode: str = "full",
    attention: str | None = "eager",
) -> Literal:
    """Algorithm 1: S ← {t−1}; while argmax_v p(v | y_S) ≠ y_t:  S ← S ∪ {argmax_{k<t} log p(y_t | y_{S∪k})}.

    `target_id` is y_t (default: ids[t]). `max_steps` bounds |S| (1024, as published). `free` [≥t] says which
    positions may be removed; the others are in every set and not in `order`. t−1 always counts as chosen first.
    """
    t = int(target_position)
    if not 1 <= t <= len(ids):
        raise ValueError(f"no token {t} to rationalise in {len(ids)}")
    target = int(ids[t] if target_id is None else target_id)
    given, candidates = split(free, t, t - 1)
    limit = 1024 if max_steps is None else max_steps
    with attention_of(hf, attention):
        return greedy(
            causal_answers(hf, ids, target, mode),
            given,
            [t - 1],
            candidates,
            limit,
            len if mode == "sparse" else lambda kept: t,
        )


def exhaustive_causal(
    hf: Any,
    ids: Sequence[int],
    target_position: int,
    max_size: int = 6,
    *,
    target_id: int | None = None,
    free: Any = None,
    mode: str = "full",
    attention: str | None = "eager",
) -> tuple[int, ...] | None:
    """min |S| with t−1 ∈ S and argmax_v p(v | y_S) = y_t: subsets by size, in the order of `combinations`.

    The first sufficient set, sorted, without what is given; None where no set of `max_size` is sufficient.
    """
    t = int(target_position)
    target = int(ids[t] if target_id is None else target_id)
    given, candidates = split(free, t, t - 1)
    evaluate = causal_answers(hf, ids, target, mode)
    with attention_of(hf, attention):
        for size in range(1, min(max_size, len(candidates) + 1) + 1):
            subsets = combinations(candidates, size - 1)
            while some := list(islice(subsets, 64)):
                sets = [tuple(sorted({*given, *chosen, t - 1})) for chosen in some]
                for chosen, answer in zip(some, evaluate(sets), strict=True):
                    if answer.hit:
                        return (*chosen, t - 1)
    return None


# -- encoder–decoder models ------------------------------------------------------------------------------


@contextmanager
def silent_cross(hf: Any, empty: torch.Tensor) -> Iterator[None]:
    """Where `empty` [b], cross-attention gives exactly 0 before its output projection: only its bias remains."""

    def silence(module: Any, args: tuple) -> tuple:
        return (args[0].masked_fill(empty[:, None, None], 0.0), *args[1:])

    outputs = [
        m
        for name, m in hf.named_modules()
        if name.endswith(("encoder_attn.out_proj", "EncDecAttention.o"))
    ]
    if not outputs:
        raise ValueError(f"where is the cross-attention of {hf.config.model_type}?")
    handles = [module.register_forward_pre_hook(silence) for module in outputs]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def seq2seq_logits(
    hf: Any, source_ids: Sequence[int], prefix_ids: Sequence[int], sets: Sequence[Sequence[int]]
) -> torch.Tensor:
    """[n s v] logits of all decoder rows; the last row is p(· | x_{S_x}, y_{S_y}).

    Sets are on one axis, source first. All tokens run at their own positions and what is removed is hidden as a key:
    encoder rows see kept source tokens (and themselves), decoder rows kept source tokens and kept earlier prefix
    tokens (and themselves). With no source token left cross-attention gives 0.
    """
    n, size = len(source_ids), len(source_ids) + len(prefix_ids)
    kept = torch.zeros(len(sets), size, dtype=torch.bool, device=hf.device)
    for row, chosen in zip(kept, sets, strict=True):
        row[list(chosen)] = True
    of_source, of_prefix = kept[:, :n], kept[:, n:]
    source = torch.tensor([list(source_ids)] * len(sets), device=hf.device)
    prefix = torch.tensor([list(prefix_ids)] * len(sets), device=hf.device)
    empty = ~of_source.any(1)

    itself = torch.eye(n, dtype=torch.bool, device=hf.device)
    encoder_mask = additive(of_source[:, None, :] | itself, hf.dtype)
    positions = torch.arange(len(prefix_ids), device=hf.device).repeat(len(sets), 1)
    decoder_mask = additive(causal_see(positions, of_prefix, None), hf.dtype)
    cross = (
        of_source | empty[:, None]
    )  # a softmax needs something to see; `silent_cross` takes it away again
    cross_mask = additive(cross[:, None, :].expand(-1, len(prefix_ids), -1), hf.dtype)

    states = hf.get_encoder()(input_ids=source, attention_mask=encoder_mask).last_hidden_state
    with silent_cross(hf, empty):
        return hf(
            encoder_outputs=(states,),
            attention_mask=cross_mask,
            decoder_input_ids=prefix,
            decoder_attention_mask=decoder_mask,
            use_cache=False,
        ).logits


def greedy_seq2seq(
    hf: Any,
    source_ids: Sequence[int],
    prefix_ids: Sequence[int],
    target_index: int | None = None,
    *,
    target_id: int | None = None,
    max_steps: int | None = None,
    free: Any = None,
    attention: str | None = "eager",
) -> Literal:
    """S_x ← ∅, S_y ← {t−1}; while the argmax is not y_t, add the best token of the source or of the prefix.

    `prefix_ids` are decoder inputs, the start token first; y_t is prefix_ids[t] or `target_id`, read at row t−1
    (t = `target_index`, default: behind the prefix). One axis: source 0..N−1, prefix N..N+t−1; `order`, the
    candidates of the steps and `free` [≥N+t] are on it. `max_steps` bounds |S_x| + |S_y| (default N+t).
    """
    n, t = len(source_ids), len(prefix_ids) if target_index is None else int(target_index)
    if not 1 <= t <= len(prefix_ids):
        raise ValueError(f"no token {t} to rationalise in {len(prefix_ids)}")
    target = int(prefix_ids[t] if target_id is None else target_id)
    last = n + t - 1
    given, candidates = split(free, n + t, last)

    def evaluate(sets: list[tuple[int, ...]]) -> list[Answer]:
        size = max(1, TOKENS_PER_BATCH // (n + t))
        answers = []
        for i in range(0, len(sets), size):
            logits = seq2seq_logits(hf, source_ids, prefix_ids[:t], sets[i : i + size])
            answers += [read(rows[-1], target) for rows in logits]
        return answers

    limit = n + t if max_steps is None else max_steps
    with attention_of(hf, attention):
        return greedy(evaluate, given, [last], candidates, limit, lambda kept: t)


# -- anything with a label -------------------------------------------------------------------------------


def greedy_labels(
    score: Callable[[np.ndarray], tuple[Any, Any]],
    n: int,
    *,
    free: Any = None,
    max_steps: int | None = None,
) -> Literal:
    """S ← ∅; while argmax_c p(c | x_S) ≠ y:  S ← S ∪ {argmax_k log p(y | x_{S∪k})}.

    `score(keep Bool[c n]) → (log p [c], the argmax is y [c])`. `free` [n] says what may be removed; the other
    tokens (special ones) are kept in every row. An empty rationale is possible: then `order` is [].
    """
    given, candidates = split(free, n, -1)

    def evaluate(sets: list[tuple[int, ...]]) -> list[Answer]:
        keep = np.zeros((len(sets), n), bool)
        for row, kept in zip(keep, sets, strict=True):
            row[list(kept)] = True
        log_probs, hits = score(keep)
        return [Answer(float(p), None, bool(hit)) for p, hit in zip(log_probs, hits, strict=True)]

    return greedy(
        evaluate, given, [], candidates, n if max_steps is None else max_steps, lambda kept: n
    )


# -- the oracle's own checks -----------------------------------------------------------------------------


def gap(a: Any, b: Any) -> float:
    """max |a − b|."""
    return float((torch.as_tensor(a) - torch.as_tensor(b)).abs().max())


def differences(a: Literal, b: Literal) -> float:
    """max |Δ log p| over all candidates of all steps; the orders must be equal."""
    assert (a.order, a.reached, a.token_forwards) == (b.order, b.reached, b.token_forwards), (
        a.order,
        b.order,
    )
    pairs = [
        (x.candidates[k], y.candidates[k])
        for x, y in zip(a.steps, b.steps, strict=True)
        for k in x.candidates
    ]
    return max(abs(x - y) for x, y in pairs)


def draw(size: int, rng: np.random.Generator) -> list[int]:
    """A random proper subset of 0..size−1 that holds the last position."""
    n = int(rng.integers(0, size - 1))
    return sorted([*rng.choice(size - 1, n, replace=False).tolist(), size - 1])


def other(ids: list[int], kept: Sequence[int], vocabulary: int) -> list[int]:
    """Other tokens where nothing is kept."""
    return [x if i in kept else (x + 7) % vocabulary for i, x in enumerate(ids)]


def check_causal(family: str, ids: list[int], rng: np.random.Generator) -> dict[str, Any]:
    """Masks, positions and windows of one family, and the properties of the search on it (methods.md 1.8)."""
    from raison.testing import tiny_hf

    hf, _ = tiny_hf(family, "causal")
    vocabulary, size, before = hf.config.vocab_size, len(ids), hf.config._attn_implementation
    seen: dict[str, Any] = dict(keep_all=0.0, masked_removed=0.0, hidden=0.0)
    with attention_of(hf, "eager"):
        plain = hf(input_ids=torch.tensor([ids])).logits[0]
        for mode in ("full", "sparse"):
            seen["keep_all"] = max(
                seen["keep_all"], gap(causal_logits(hf, ids, [range(size)], mode)[0], plain)
            )
        for _ in range(12):
            kept = draw(size, rng)
            full = causal_logits(hf, ids, [kept])[0, kept]
            seen["masked_removed"] = max(
                seen["masked_removed"], gap(full, causal_logits(hf, ids, [kept], "sparse")[0])
            )
            changed = causal_logits(hf, other(ids, kept, vocabulary), [kept])[0, kept]
            seen["hidden"] = max(seen["hidden"], gap(full, changed))
            if not getattr(
                hf.config, "sliding_window", None
            ):  # transformers measures windows in what runs
                given = dict(
                    position_ids=torch.tensor([kept]), attention_mask=torch.ones(1, len(kept))
                )
                bare = hf(input_ids=torch.tensor([ids])[:, kept], use_cache=True, **given).logits[0]
                seen["plain_removed"] = max(seen.get("plain_removed", 0.0), gap(full, bare))
    sizes, best, modes = [], [], 0.0
    for t in range(1, size + 1):
        target = int(plain[t - 1].argmax())
        found = greedy_causal(hf, ids, t, target_id=target)
        sparse = greedy_causal(hf, ids, t, target_id=target, mode="sparse")
        modes = max(modes, differences(found, sparse))
        n = len(found.order)
        assert found.reached and found.order[0] == t - 1
        assert all(
            step.argmax != target for step in found.steps[:-1]
        )  # no shorter prefix is sufficient
        assert (
            sparse.token_forwards
            == sparse.head_rows
            == 1 + sum(k * (t - k + 1) for k in range(2, n + 1))
        )
        least = exhaustive_causal(hf, ids, t, size, target_id=target)
        assert least is not None and len(least) <= n
        assert exhaustive_causal(hf, ids, t, len(least) - 1, target_id=target) is None
        sizes.append(n)
        best.append(len(least))
    missed = greedy_causal(hf, ids, size, target_id=int(plain[-1].argmin()))  # nobody's argmax
    assert not missed.reached and sorted(missed.order) == list(range(size))
    free = np.arange(size) > 1
    held = greedy_causal(hf, ids, size, target_id=int(plain[-1].argmax()), free=free)
    assert held.reached and not {0, 1} & set(held.order)
    assert hf.config._attn_implementation == before  # given back as it was
    return {**seen, "modes": modes, "greedy": sizes, "exhaustive": best}


def check_bigram(ids: list[int]) -> None:
    """Without attention the logits depend on the last token only: every rationale is [t−1]."""
    from raison.testing import tiny_hf

    hf, _ = tiny_hf("llama", "causal")
    with torch.no_grad():
        for layer in hf.model.layers:
            layer.self_attn.o_proj.weight.zero_()
        plain = hf(input_ids=torch.tensor([ids])).logits[0]
    for t in range(1, len(ids) + 1):
        for mode in ("full", "sparse"):
            found = greedy_causal(hf, ids, t, target_id=int(plain[t - 1].argmax()), mode=mode)
            assert (found.order, found.reached, found.token_forwards) == ([t - 1], True, 1)
    tied = greedy_causal(
        hf, ids, 6, target_id=int(plain[5].argmin())
    )  # nothing helps: ties go to the lowest
    assert not tied.reached and tied.order == [5, 0, 1, 2, 3, 4]


def check_seq2seq(
    family: str, ids: list[int], prefix: list[int], rng: np.random.Generator
) -> dict[str, Any]:
    """The same for encoder–decoders, and that no source means no source."""
    import copy

    from raison.testing import tiny_hf

    hf, _ = tiny_hf(family, "seq2seq")
    vocabulary, n, t = hf.config.vocab_size, len(ids), len(prefix)
    seen = dict(keep_all=0.0, removed=0.0, hidden=0.0, empty=0.0)
    mute = copy.deepcopy(hf)  # cross-attention whose values are all 0
    for name, weight in mute.named_parameters():
        if ".encoder_attn.v_proj." in name or ".EncDecAttention.v." in name:
            weight.data.zero_()
    with attention_of(hf, "eager"), attention_of(mute, "eager"):
        plain = hf(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([prefix])).logits[
            0
        ]
        seen["keep_all"] = gap(seq2seq_logits(hf, ids, prefix, [range(n + t)])[0], plain)
        for _ in range(12):
            kept = draw(n + t, rng)
            of_prefix = [k - n for k in kept if k >= n]
            full = seq2seq_logits(hf, ids, prefix, [kept])[0, of_prefix]
            axis = other([*ids, *prefix], kept, vocabulary)
            seen["hidden"] = max(
                seen["hidden"],
                gap(full, seq2seq_logits(hf, axis[:n], axis[n:], [kept])[0, of_prefix]),
            )
            cut = int(
                rng.integers(1, n)
            )  # without its end, the source is a shorter text at the same positions
            shorter = hf(
                input_ids=torch.tensor([ids[:cut]]), decoder_input_ids=torch.tensor([prefix])
            ).logits[0]
            rows = seq2seq_logits(hf, ids, prefix, [[*range(cut), *range(n, n + t)]])[0]
            seen["removed"] = max(seen["removed"], gap(rows, shorter))
            seen["removed"] = max(seen["removed"], gap(full, alone(hf, ids, prefix, kept)))
            none = [k for k in kept if k >= n]
            silent = seq2seq_logits(mute, ids, prefix, [[*range(n), *none]])[0, of_prefix]
            for source in (ids, other(ids, [], vocabulary)):
                both = seq2seq_logits(
                    hf, source, prefix, [none, kept]
                )  # a batch of an empty and another source
                seen["empty"] = max(seen["empty"], gap(both[0, of_prefix], silent))
    sizes = []
    for i in range(1, t + 1):
        found = greedy_seq2seq(hf, ids, prefix, i, target_id=int(plain[i - 1].argmax()))
        assert found.reached and found.order[0] == n + i - 1 and found.steps[0].size == 1
        assert set(found.steps[-1].candidates) <= set(range(n + i))
        sizes.append(len(found.order))
    return {**seen, "greedy": sizes}


def alone(hf: Any, ids: list[int], prefix: list[int], kept: Sequence[int]) -> torch.Tensor:
    """Logits of a model that runs the kept tokens only; its positions are put in by hooks. [kept prefix, v]."""
    n = len(ids)
    streams = [
        torch.tensor([k for k in kept if k < n]),
        torch.tensor([k - n for k in kept if k >= n]),
    ]
    undo: list[Callable[[], None]] = []

    def table(module: Any, positions: torch.Tensor) -> None:
        rows = module.weight[positions + getattr(module, "offset", 0)]
        undo.append(module.register_forward_hook(lambda m, args, out: rows.view(*out.shape)).remove)

    def bias(module: Any, positions: torch.Tensor) -> None:
        whole = module.compute_bias(n + len(prefix), n + len(prefix))
        module.compute_bias = lambda *args, **kwargs: whole[:, :, positions][..., positions]
        undo.append(lambda: delattr(module, "compute_bias"))

    source = streams[0]
    if not len(source):  # one token that nobody sees
        source = torch.tensor([0])
    for name, module in hf.named_modules():
        positions = streams[1] if "decoder" in name.split(".") else source
        if name.endswith("embed_positions"):
            table(module, positions)
        elif getattr(module, "has_relative_attention_bias", False):
            bias(module, positions)
    try:
        with silent_cross(hf, torch.tensor([not len(streams[0])])):
            inputs = dict(
                input_ids=torch.tensor([ids])[:, source], decoder_input_ids=torch.tensor([prefix])
            )
            inputs["decoder_input_ids"] = inputs["decoder_input_ids"][:, streams[1]]
            return hf(**inputs, use_cache=False).logits[0]
    finally:
        for step in undo:
            step()


def check_labels() -> None:
    """log p = −(what is missing of {2, 5}); a tie goes to the lowest position; a special token is never chosen."""

    def score(keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert keep[:, 0].all()
        missing = 2 - keep[:, [2, 5]].sum(1)
        return -missing.astype(float), missing == 0

    found = greedy_labels(score, 7, free=np.arange(7) > 0)
    assert (found.order, found.reached, found.steps[0]) == ([2, 5], True, (0, None, None, -2.0, {}))
    assert (
        greedy_labels(lambda keep: (np.zeros(len(keep)), np.ones(len(keep), bool)), 3).order == []
    )
    assert greedy_labels(score, 7, free=np.arange(7) > 0, max_steps=1).order == [2]


def main() -> None:
    from raison.testing import FAMILIES
    from raison.testing.precision import Float64

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 160, 9).tolist()
    with Float64():
        for family, tasks in FAMILIES.items():
            if "causal" in tasks:
                seen = check_causal(family, ids, rng)
            elif "seq2seq" in tasks:
                seen = check_seq2seq(family, ids[:6], [0, *ids[6:], 11], rng)
            else:
                continue
            print(
                family,
                *(f"{k} {v:.1e}" if isinstance(v, float) else f"{k} {v}" for k, v in seen.items()),
                sep="  ",
            )
            assert all(v < 1e-9 for v in seen.values() if isinstance(v, float)), family
        check_bigram(ids)
    check_labels()
    print("all is well")


if __name__ == "__main__":
    main()

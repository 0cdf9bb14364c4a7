"""Tiny seeded models of every family, their configs, and tiny tokenizers of every kind.

Their weights are random and larger than usual, so that attention is far from uniform and a wrong mask or
position shows at once. Windows are four tokens wide for the same reason.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from raison.models.protocol import InspectableModel

__all__ = ["FAMILIES", "TEXTS", "tiny_hf", "tiny_model", "tiny_tokenizer"]

Keywords = dict[str, Any]  # of a config of transformers

TEXTS = (
    "The film is a lovely surprise, and nobody in the old town expected it.",
    "A dull story with good actors; the ending made no sense to anyone.",
    "Where does the river begin? It begins in the hills above the small town.",
    "She said it wasn't bad, but he didn't believe her, and they left early.",
    "Numbers like 3.14 and 42, names like Ada and Alan, and words like übergroß.",
)

ENCODERS = (
    "bert",
    "roberta",
    "distilbert",
    "electra",
    "albert",
    "modernbert",
    "deberta",
    "big_bird",
)
DECODERS = ("gpt2", "gpt_neox", "llama", "mistral", "qwen", "gemma")
WRITERS = ("t5", "bart", "marian")
FAMILIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ENCODERS, ("classification", "tagging", "qa")),
    **dict.fromkeys(DECODERS, ("causal", "classification")),
    **dict.fromkeys(WRITERS, ("seq2seq",)),
}

KINDS = {
    "wordpiece": ("bert", "distilbert", "electra", "big_bird"),
    "bytes": ("roberta", "modernbert", "gpt2", "gpt_neox", "qwen", "bart"),
    "unigram": ("albert", "deberta", "t5", "marian", "gemma"),
    "fallback": ("llama", "mistral"),
}


SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]


@cache
def tiny_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """A tokenizer of a few hundred pieces: wordpiece, bytes (BPE), unigram, or fallback (BPE with bytes)."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    makers = {
        "wordpiece": wordpiece_tokenizer_core,
        "unigram": unigram_tokenizer_core,
        "bytes": byte_pair_tokenizer_core,
        "fallback": byte_fallback_tokenizer_core,
    }
    if kind not in makers:
        raise ValueError(f"no tokenizer kind {kind!r}")
    core = makers[kind]()
    core.add_special_tokens(SPECIAL)
    if kind == "fallback":  # bytes are pieces of text, not special tokens
        core = tiny_core_without_other_special_tokens(core)
        pair, single = "[CLS] $A $B:1", "[CLS] $A"
    else:
        pair, single = "[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS] $A [SEP]"
    ids = [(name, core.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    core.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=ids
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        bos_token="[CLS]",
        eos_token="[SEP]",
        mask_token="[MASK]",
    )


def wordpiece_tokenizer_core() -> Tokenizer:
    """Letters and beginnings of words in lower case, as BERT has them."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    small_letters = letters_for_tiny_tokenizer(str.lower)
    continued = ["##" + letter for letter in small_letters]
    names = [
        *SPECIAL,
        *small_letters,
        *continued,
        *word_beginnings_for_tiny_tokenizer(str.lower, 2, 6),
    ]
    ids: dict[str, int] = {}
    for number, name in enumerate(names):
        ids[name] = number
    core = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return core


def unigram_tokenizer_core() -> Tokenizer:
    """Letters and beginnings of words with scores, as T5 has them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = ["▁", *letters_for_tiny_tokenizer(str)]
    for piece in word_beginnings_for_tiny_tokenizer(str, 2, 5):
        names += [piece, "▁" + piece]
    scores = [(name, 0.0) for name in SPECIAL]
    for name in dict.fromkeys(names):
        scores.append((name, -9.0 / len(name)))
    unknown = SPECIAL.index("[UNK]")
    core = Tokenizer(models.Unigram(scores, unk_id=unknown, byte_fallback=False))
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    return core


def byte_pair_tokenizer_core() -> Tokenizer:
    """Pairs of bytes, as GPT-2 has them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=360, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(TEXTS, trainer)
    return core


def byte_fallback_tokenizer_core() -> Tokenizer:
    """Pairs of letters, and bytes for what has none, as Llama has them."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    core = Tokenizer(models.BPE(unk_token="[UNK]", byte_fallback=True, fuse_unk=False))
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    bytes_as_tokens = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=[*SPECIAL, *bytes_as_tokens], show_progress=False
    )
    core.train_from_iterator(TEXTS, trainer)
    return core


def letters_for_tiny_tokenizer(fold: Callable[[str], str]) -> list[str]:
    """Every character of the texts, in order of its code."""
    letters: set[str] = set()
    for text in TEXTS:
        letters.update(fold(text))
    return sorted(letter for letter in letters if not letter.isspace())


def word_beginnings_for_tiny_tokenizer(
    fold: Callable[[str], str], shortest: int, longest: int
) -> list[str]:
    """Beginnings of the texts' words; made here because trainers give another vocabulary in each process."""
    beginnings = set()
    for text in TEXTS:
        for word in re.findall(r"\w+", fold(text)):
            for length in range(shortest, longest + 1):
                beginnings.add(word[:length])
    return sorted(beginning for beginning in beginnings if len(beginning) >= shortest)


def tiny_core_without_other_special_tokens(core: Tokenizer) -> Tokenizer:
    """Take the byte tokens back out of the special ones."""
    from tokenizers import Tokenizer

    data = json.loads(core.to_str())
    special = [token for token in data["added_tokens"] if token["content"] in SPECIAL]
    data["added_tokens"] = special
    return Tokenizer.from_str(json.dumps(data))


def tokenizer_of_family(family: str) -> PreTrainedTokenizerFast:
    """The family's kind of tokenizer; decoders write without special tokens, as GPT-2 does."""
    from tokenizers import processors

    kind = next(kind for kind, names in KINDS.items() if family in names)
    tokenizer = copy.deepcopy(tiny_tokenizer(kind))
    if family in DECODERS and kind != "fallback":
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A", pair="$A $B"
        )
    if family in WRITERS:
        end = [("[SEP]", tokenizer.sep_token_id)]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A [SEP]", special_tokens=end
        )
    if family in ("bert", "electra", "albert", "deberta", "big_bird"):
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    else:
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tokenizer


def tiny_config(family: str, vocabulary: int) -> PretrainedConfig:
    """A config of a few hundred weights that keeps what makes the family special."""
    import transformers

    t: Any = transformers  # whose configs take any keywords
    plain: Keywords = dict(
        vocab_size=vocabulary,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
        pad_token_id=0,
    )
    rotary = dict(plain, num_key_value_heads=1, head_dim=8, bos_token_id=1, eos_token_id=2)
    encoder_decoder = encoder_decoder_config_keywords(vocabulary)
    makers: dict[str, Callable[[], PretrainedConfig]] = {
        "bert": lambda: t.BertConfig(**plain),
        "roberta": lambda: t.RobertaConfig(
            **{**plain, "max_position_embeddings": 70}, type_vocab_size=1
        ),
        "distilbert": lambda: t.DistilBertConfig(
            vocab_size=vocabulary,
            dim=16,
            n_layers=2,
            n_heads=2,
            hidden_dim=24,
            max_position_embeddings=64,
        ),
        "electra": lambda: t.ElectraConfig(**plain, embedding_size=16),
        "albert": lambda: t.AlbertConfig(**plain, embedding_size=12),
        "modernbert": lambda: t.ModernBertConfig(
            **plain,
            local_attention=4,
            global_attn_every_n_layers=2,
            cls_token_id=1,
            sep_token_id=2,
            bos_token_id=1,
            eos_token_id=2,
        ),
        "deberta": lambda: t.DebertaV2Config(
            **plain,
            relative_attention=True,
            position_buckets=8,
            pos_att_type=["c2p", "p2c"],
            position_biased_input=False,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
        ),
        "big_bird": lambda: t.BigBirdConfig(**plain, attention_type="original_full"),
        "gpt2": lambda: t.GPT2Config(
            vocab_size=vocabulary,
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=64,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        ),
        "gpt_neox": lambda: t.GPTNeoXConfig(**plain, bos_token_id=1, eos_token_id=2),
        "llama": lambda: t.LlamaConfig(**rotary),
        "mistral": lambda: t.MistralConfig(**rotary, sliding_window=4),
        "qwen": lambda: t.Qwen3Config(**rotary),
        "gemma": lambda: t.Gemma2Config(
            **rotary,
            sliding_window=4,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=5.0,
            query_pre_attn_scalar=8,
        ),
        "t5": lambda: t.T5Config(
            vocab_size=vocabulary,
            d_model=16,
            d_kv=8,
            d_ff=24,
            num_layers=2,
            num_heads=2,
            pad_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=0,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=12,
            feed_forward_proj="gated-gelu",  # smooth, so that finite differences mean something
        ),
        "bart": lambda: t.BartConfig(**encoder_decoder),
        "marian": lambda: t.MarianConfig(
            **encoder_decoder, scale_embedding=True, decoder_vocab_size=vocabulary
        ),
    }
    return makers[family]()


def encoder_decoder_config_keywords(vocabulary: int) -> Keywords:
    """The keywords of a BART config, or of one of its kind."""
    return dict(
        vocab_size=vocabulary,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=0,
        forced_eos_token_id=2,
    )


def untrained_model(config: PretrainedConfig, task: str) -> PreTrainedModel:
    """The model of a config with the head of a task."""
    import transformers

    t: Any = transformers  # whose automatic classes have no types
    classes = {
        "classification": t.AutoModelForSequenceClassification,
        "tagging": t.AutoModelForTokenClassification,
        "qa": t.AutoModelForQuestionAnswering,
        "causal": t.AutoModelForCausalLM,
        "seq2seq": t.AutoModelForSeq2SeqLM,
    }
    # soft caps need eager attention; transformers before 5.21 does not choose it by itself
    caps = getattr(config, "attn_logit_softcapping", None) is not None
    attention = {"attn_implementation": "eager"} if caps else {}
    model: PreTrainedModel = classes[task].from_config(config, **attention)
    return model


def tiny_hf(
    family: str, task: str, seed: int = 0, *, labels: int = 3, double: bool = True
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A transformers model with random weights and its tokenizer."""
    import torch

    tokenizer = tokenizer_of_family(family)
    config = tiny_config(family, len(tokenizer))
    if task in ("classification", "tagging"):
        config.num_labels = labels
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        model = untrained_model(config, task)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.dim() > 1:
                    size = 1.0 if "embed" in name else 0.4
                    weight.copy_(torch.randn_like(weight) * size)
                elif "norm" not in name.lower():
                    weight.copy_(torch.randn_like(weight) * 0.2)
    finally:
        torch.random.set_rng_state(state)
    model.tie_weights()
    if task == "seq2seq":
        model.generation_config.max_new_tokens = 6  # random weights never stop by themselves
    if double:
        model = model.double()
    return model.eval(), tokenizer


def tiny_model(
    family: str, task: str, seed: int = 0, *, labels: int = 3, double: bool = True
) -> InspectableModel:
    """The same, loaded by raison."""
    from raison.models.load import load

    model, tokenizer = tiny_hf(family, task, seed, labels=labels, double=double)
    return load(model, tokenizer)

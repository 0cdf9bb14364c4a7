"""A text classifier with one attention over its words, whose weights are its own explanation (P2, P3).

    e_t = E[x_t];   h = encoder(e);   r = h | [h; e] | h + e;   a_t = score(r_t);   α = φ(a);   logits = W Σ α_t r_t + b

Since Σ α_t = 1, logits = Σ α_t (W r_t + b): a mean of what every word says for itself. Padding and special tokens get
α = 0 exactly. A token that the mask hides does not exist: a BiLSTM reads the others as if they were the whole text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

from raison.attention_models.config import Design
from raison.attention_models.normalizers import normalizer_of
from raison.models.recurrent import over_present

__all__ = ["AttentionClassifier", "AttentionConfig", "Told"]

TYPE = "raison_attention"


class AttentionConfig(PretrainedConfig):  # type: ignore[misc]
    """A design, the size of the vocabulary, the tokens that nobody attends to, and the labels."""

    model_type = TYPE

    def __init__(
        self, design: dict[str, Any] | None = None, vocab_size: int = 5, special: list[int] | None = None, **more: Any
    ):
        self.design = design if design is not None else asdict(Design())
        self.vocab_size = vocab_size
        self.special = [0, 2, 3] if special is None else special
        made = Design.of(self.design)
        self.hidden_size, self.num_attention_heads = made.width, made.heads
        self.max_position_embeddings = made.longest
        super().__init__(**{"pad_token_id": 0, **more})


@dataclass
class Told(ModelOutput):  # type: ignore[misc]
    """What a pass tells: beside the logits everything that the diagnostics read."""

    logits: torch.Tensor | None = None  # [b c]
    weights: torch.Tensor | None = None  # [b t] attention α
    scores: torch.Tensor | None = None  # [b t] attention a
    embeddings: torch.Tensor | None = None  # [b t d] e
    states: torch.Tensor | None = None  # [b t d] h
    read: torch.Tensor | None = None  # [b t d'] r
    real: torch.Tensor | None = None  # [b t] tokens that may be attended to
    hidden_states: tuple[torch.Tensor, ...] | None = None  # e, r


class BiLSTM(nn.Module):
    """Reads the tokens that are there, as if no others were."""

    def __init__(self, design: Design):
        super().__init__()
        more = design.dropout if design.layers > 1 else 0.0
        self.lstm = nn.LSTM(
            design.width, design.width // 2, design.layers, batch_first=True, bidirectional=True, dropout=more
        )

    def forward(self, embedded: torch.Tensor, there: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
        return over_present(self.lstm, embedded, there)


class Transformer(nn.Module):
    """BERT's blocks over the given word embeddings, with learned positions."""

    def __init__(self, design: Design):
        super().__init__()
        self.blocks = BertModel(
            BertConfig(
                vocab_size=1,  # words are embedded outside
                hidden_size=design.width,
                num_hidden_layers=design.layers,
                num_attention_heads=design.heads,
                intermediate_size=4 * design.width,
                max_position_embeddings=design.longest,
                hidden_dropout_prob=design.dropout,
                attention_probs_dropout_prob=design.dropout,
                pad_token_id=0,
            ),
            add_pooling_layer=False,
        )

    def forward(self, embedded: torch.Tensor, there: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
        made = self.blocks(inputs_embeds=embedded, attention_mask=there.long(), position_ids=positions)
        states: torch.Tensor = made.last_hidden_state
        return states


class Scorer(nn.Module):
    """Attention scores: v·tanh(W r + b), or ⟨q, r⟩ / √d."""

    def __init__(self, design: Design):
        super().__init__()
        self.design = design
        width = design.read_width
        if design.attention == "additive":
            self.inner = nn.Linear(width, max(1, width // 2))
            self.query = nn.Linear(max(1, width // 2), 1, bias=False)
        else:
            self.query = nn.Linear(width, 1, bias=False)
            if design.spread is not None:
                nn.init.normal_(self.query.weight, std=design.spread)

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        if self.design.attention == "additive":
            scores: torch.Tensor = self.query(torch.tanh(self.inner(read)))
        else:
            scores = self.query(read) / sqrt(read.shape[-1])
        return scores[..., 0]


class AttentionClassifier(PreTrainedModel):  # type: ignore[misc]
    """The classifier of a design; see the file's first lines for the equation."""

    config_class = AttentionConfig
    base_model_prefix = "classifier"
    raison_task = "classification"

    @staticmethod
    def raison_adapted(hf: Any, tokenizer: Any, name: str) -> Any:
        """The model that `raison.load` makes of it."""
        from raison.attention_models.adapter import adapted

        return adapted(hf, tokenizer, name)

    _supports_sdpa = True

    def __init__(self, config: AttentionConfig):
        super().__init__(config)
        self.design = design = Design.of(config.design)
        self.num_labels = int(config.num_labels or 2)
        self.words = nn.Embedding(config.vocab_size, design.width, padding_idx=config.pad_token_id)
        self.encoder = BiLSTM(design) if design.encoder == "bilstm" else Transformer(design)
        self.scorer = Scorer(design)
        self.normalizer = normalizer_of(design.normalizer)
        self.decoder = nn.Linear(design.read_width, self.num_labels)
        self.dropout = nn.Dropout(design.dropout)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """As torch (and BERT's blocks) made them."""

    def get_input_embeddings(self) -> nn.Module:
        return self.words

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.words = value  # type: ignore[assignment]

    def get_output_embeddings(self) -> None:
        return None

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Told:
        """`weights` [b t] replace the model's own attention (of padding and special tokens they are 0 all the same)."""
        there = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        special = torch.isin(input_ids, torch.tensor(self.config.special, device=input_ids.device))
        real = there & ~special
        embedded = self.words(input_ids)
        states = self.encoder(self.dropout(embedded), there, position_ids)
        read = {
            "none": lambda: states,
            "concat": lambda: torch.cat([states, embedded], -1),
            "residual": lambda: states + embedded,
        }[self.design.combine]()
        scores = self.scorer(read)
        own = self.normalizer(scores, real)
        used = own if weights is None else weights * real
        pooled = (used[:, None, :] @ read)[:, 0]  # [b d']
        return Told(
            logits=self.decoder(self.dropout(pooled)),
            weights=used,
            scores=scores,
            embeddings=embedded,
            states=states,
            read=read,
            real=real,
            hidden_states=(embedded, read) if kwargs.get("output_hidden_states") else None,
        )

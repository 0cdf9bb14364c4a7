"""A text classifier with one attention over its words, whose weights are its own explanation (P2, P3).

    e_t = E[x_t];   h = encoder(e);   r = h | [h; e] | h + e;   a_t = score(r_t);   α = φ(a);   logits = W Σ α_t r_t + b

Since Σ α_t = 1, logits = Σ α_t (W r_t + b): a mean of what every word says for itself. Padding and special tokens get
α = 0 exactly. A token that the mask hides does not exist: a BiLSTM reads the others as if they were the whole text.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

import torch
from torch import nn
from transformers import BertConfig, BertModel, PretrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from raison.attention_models.config import ClassifierConfig
from raison.attention_models.normalizers import normalizer_of
from raison.models.recurrent import over_present

__all__ = ["MODEL_TYPE", "AttentionClassifier", "ClassifierOutput", "StoredClassifierConfig"]

MODEL_TYPE = "raison_attention"
FILLED_IN = cast(
    torch.Tensor, None
)  # transformers wants None as the default of all outputs; `forward` gives them all


class StoredClassifierConfig(PretrainedConfig):
    """What config.json holds: a classifier's config, its vocabulary's size, tokens that nobody attends to, labels."""

    model_type = MODEL_TYPE

    def __init__(
        self,
        classifier: dict[str, Any] | None = None,
        vocab_size: int = 5,
        special_ids: list[int] | None = None,
        **more: Any,
    ):
        if "design" in more:
            raise ValueError("raison 0.1 wrote it in another format: train the classifier again")
        config = ClassifierConfig.from_settings(classifier or {})
        self.classifier = config.to_dict()
        self.vocab_size = vocab_size
        if special_ids is None:
            special_ids = [0, 2, 3]
        self.special_ids = special_ids
        self.hidden_size = config.width
        self.num_attention_heads = config.heads
        self.max_position_embeddings = config.longest
        super().__init__(**{"pad_token_id": 0, **more})


@dataclass
class ClassifierOutput(ModelOutput):
    """The logits of a pass, and everything that diagnostics and regularizers read."""

    logits: torch.Tensor = FILLED_IN  # [b c]
    weights: torch.Tensor = FILLED_IN  # [b t] attention α
    scores: torch.Tensor = FILLED_IN  # [b t] attention a
    embeddings: torch.Tensor = FILLED_IN  # [b t d] e
    states: torch.Tensor = FILLED_IN  # [b t d] h
    read: torch.Tensor = FILLED_IN  # [b t d'] r
    real: torch.Tensor = FILLED_IN  # [b t] tokens that may be attended to
    hidden_states: tuple[torch.Tensor, ...] | None = None  # e, r


class BiLSTM(nn.Module):
    """Reads the tokens that are present, as if no others were."""

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        between_layers = config.dropout if config.layers > 1 else 0.0
        self.lstm = nn.LSTM(
            config.width,
            config.width // 2,
            config.layers,
            batch_first=True,
            bidirectional=True,
            dropout=between_layers,
        )

    def forward(
        self, embedded: torch.Tensor, present: torch.Tensor, positions: torch.Tensor | None
    ) -> torch.Tensor:
        return over_present(self.lstm, embedded, present)


class Transformer(nn.Module):
    """BERT's blocks over the given word embeddings, with learned positions."""

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.blocks = BertModel(
            BertConfig(
                vocab_size=1,  # words are embedded outside
                hidden_size=config.width,
                num_hidden_layers=config.layers,
                num_attention_heads=config.heads,
                intermediate_size=4 * config.width,
                max_position_embeddings=config.longest,
                hidden_dropout_prob=config.dropout,
                attention_probs_dropout_prob=config.dropout,
                pad_token_id=0,
            ),
            add_pooling_layer=False,
        )

    def forward(
        self, embedded: torch.Tensor, present: torch.Tensor, positions: torch.Tensor | None
    ) -> torch.Tensor:
        output = self.blocks(
            inputs_embeds=embedded, attention_mask=present.long(), position_ids=positions
        )
        return cast(torch.Tensor, output.last_hidden_state)


class AdditiveScorer(nn.Module):
    """Attention scores v·tanh(W r + b)."""

    def __init__(self, width: int):
        super().__init__()
        inner_width = max(1, width // 2)
        self.inner = nn.Linear(width, inner_width)
        self.query = nn.Linear(inner_width, 1, bias=False)

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.query(torch.tanh(self.inner(read)))
        return scores[..., 0]


class DotScorer(nn.Module):
    """Attention scores ⟨q, r⟩ / √d."""

    def __init__(self, width: int, query_std: float | None):
        super().__init__()
        self.query = nn.Linear(width, 1, bias=False)
        if query_std is not None:
            nn.init.normal_(self.query.weight, std=query_std)

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.query(read) / sqrt(read.shape[-1])
        return scores[..., 0]


class AttentionClassifier(PreTrainedModel):
    """The classifier of a config; see the file's first lines for the equation."""

    config_class = StoredClassifierConfig
    base_model_prefix = "classifier"
    raison_task = "classification"
    raison_loader = "attention"  # what wraps it as a Model, in the registry of loaders
    _supports_sdpa = True

    def __init__(self, config: StoredClassifierConfig):
        super().__init__(config)
        own = ClassifierConfig.from_settings(config.classifier)
        self.settings = own
        self.num_labels = int(config.num_labels or 2)
        self.words = nn.Embedding(config.vocab_size, own.width, padding_idx=config.pad_token_id)
        self.encoder: nn.Module
        if own.encoder == "bilstm":
            self.encoder = BiLSTM(own)
        else:
            self.encoder = Transformer(own)
        self.scorer: nn.Module
        if own.attention == "additive":
            self.scorer = AdditiveScorer(own.read_width)
        else:
            self.scorer = DotScorer(own.read_width, own.query_std)
        self.normalizer = normalizer_of(own.normalizer)
        self.decoder = nn.Linear(own.read_width, self.num_labels)
        self.dropout = nn.Dropout(own.dropout)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """As torch (and BERT's blocks) made them."""

    def get_input_embeddings(self) -> nn.Embedding:
        return self.words

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.words = cast(nn.Embedding, value)

    def get_output_embeddings(self) -> None:
        return None

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
        output_hidden_states: bool = False,
        **kwargs: object,
    ) -> ClassifierOutput:
        """`weights` [b t] replace the model's own attention (of padding and special tokens they are 0 all the same)."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        present = attention_mask.bool()
        special = torch.isin(
            input_ids, torch.tensor(self.config.special_ids, device=input_ids.device)
        )
        real = present & ~special

        embedded = self.words(input_ids)
        states = self.encoder(self.dropout(embedded), present, position_ids)
        read = self.combined_states(states, embedded)

        scores = self.scorer(read)
        if weights is None:
            used = self.normalizer(scores, real)
        else:
            used = weights * real
        pooled = (used[:, None, :] @ read)[:, 0]  # [b d']
        return ClassifierOutput(
            logits=self.decoder(self.dropout(pooled)),
            weights=used,
            scores=scores,
            embeddings=embedded,
            states=states,
            read=read,
            real=real,
            hidden_states=(embedded, read) if output_hidden_states else None,
        )

    def combined_states(self, states: torch.Tensor, embedded: torch.Tensor) -> torch.Tensor:
        """[b t d'] what attention and decoder read."""
        if self.settings.combine == "concat":
            return torch.cat([states, embedded], -1)
        if self.settings.combine == "residual":
            return states + embedded
        return states

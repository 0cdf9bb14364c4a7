"""A BERT classifier that pools by the mean of the token vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import BertModel, BertPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class MeanPooledBert(BertPreTrainedModel):
    """BERT, the masked mean of its last hidden states, a linear head.

    The bases this is meant for (all-MiniLM-L6-v2 and its like) are sentence encoders trained with mean
    pooling: what they know about a sentence lies in the mean of its token vectors. The usual
    `BertForSequenceClassification` reads the [CLS] vector through a pooler that such a base never trained,
    and would throw that away. The mean takes in every real token, [CLS] and [SEP] too, as in the base.
    """

    raison_task = "classification"  # the class name alone does not say so

    def __init__(self, config: Any):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = BertModel(config, add_pooling_layer=False)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        kwargs["return_dict"] = True
        out = self.bert(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            **kwargs,
        )
        states = out.last_hidden_state
        if attention_mask is None:
            pooled = states.mean(dim=1)
        else:
            weight = attention_mask.to(states.dtype).unsqueeze(-1)
            # The clamp keeps a row without a single real token finite.
            pooled = (states * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1e-9)
        return SequenceClassifierOutput(
            logits=self.classifier(pooled),
            hidden_states=out.hidden_states,
            attentions=out.attentions,
        )

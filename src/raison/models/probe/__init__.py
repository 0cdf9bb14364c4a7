"""The probe: what a freshly loaded model can honestly offer.

Nothing is believed because of a name: a view must give the plain model's logits, deleting must equal
masking, an empty source must hide what it holds. What fails is not offered.
"""

from raison.models.probe.model_probe import check_weights, probe_model
from raison.models.probe.probe_text import probe_text_and_target
from raison.models.probe.view_differences import difference_of_view

__all__ = ["check_weights", "difference_of_view", "probe_model", "probe_text_and_target"]

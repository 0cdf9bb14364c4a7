"""What a freshly loaded model can honestly offer.

Nothing is believed because of a name: a view must give the plain model's logits, deleting must equal
masking, an empty source must hide what it holds. What fails is not offered.
"""

from raison.models.probe.offers import check_weights, probe
from raison.models.probe.subject import subject
from raison.models.probe.views import difference

__all__ = ["check_weights", "difference", "probe", "subject"]

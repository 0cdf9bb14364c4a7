"""CP-LRP: as AttnLRP, with attention weights taken as given."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.parameters import check_choice
from raison.methods.attn_lrp import ATTN_LRP
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.trace_answers import answers_by_gradient_rules
from raison.models.protocol import Model
from raison.models.relevance.mode import ACTIVATIONS, Rules, one_signal
from raison.models.relevance.rules import constant_rule, own_gradient_rule

__all__ = ["CPLRP", "CP_LRP"]

# Ali 2022: attention weights are given, so relevance reaches the words through the values alone. A gate is what an
# attention weight is, the factor that says how much of the other passes: it is given, too, unless a user wants halves.
IDENTITY = ((one_signal("softmax"), constant_rule), *ATTN_LRP.table)
GRADIENT = (
    (one_signal("softmax"), constant_rule),
    (one_signal(*ACTIVATIONS), own_gradient_rule),
    *ATTN_LRP.table,
)
CP_LRP = {
    (activations, gates): Rules(table, gradients=True, gates_constant=gates == "constant")
    for activations, table in (("gradient", GRADIENT), ("identity", IDENTITY))
    for gates in ("constant", "half")
}


@method("cp_lrp")
@dataclass(frozen=True)
class CPLRP(Method):
    """CP-LRP: gradient × word embedding with attention weights and the deviations of norms as constants.

    So relevance reaches the words through the values alone (Ali et al. 2022). Activations keep their gradient, as in
    the paper; activations="identity" passes relevance through them unchanged, as later code does, and conserves. The
    paper has no gated products: a gate (SwiGLU's activation) is taken as given, as the paper takes attention weights,
    which gate the values; gates="half" gives half of the relevance to each factor.
    """

    paper = "Ali et al. 2022"
    additive = True
    needs = frozenset({"gradients"})

    activations: str = "gradient"  # gradient | identity
    gates: str = "constant"  # constant | half

    def __post_init__(self) -> None:
        check_choice("activations", self.activations, ("gradient", "identity"))
        check_choice("gates", self.gates, ("constant", "half"))

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        rules = CP_LRP[self.activations, self.gates]
        breaks = "activations" if self.activations == "gradient" else ""
        return answers_by_gradient_rules(model, batch, rules, breaks)

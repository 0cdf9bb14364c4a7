"""What an audit says in words, for numbers on both sides of each threshold."""

from __future__ import annotations

from dataclasses import replace

from raison.studies.audit.attention_agreement import Agreement
from raison.studies.audit.audit_numbers import Spread
from raison.studies.audit.entropies import Entropies
from raison.studies.audit.replaced_attention import ReplacedAttention, ReplacedScores
from raison.studies.audit.run_audit import Audit
from raison.studies.audit.trained_adversary import Adversary


def spread_of(mean, values=(), low=None, high=None, count=90):
    return Spread(
        mean, mean if low is None else low, mean if high is None else high, 0.0, count, 0, values
    )


def permuted(*, f1_drop, accuracy_drop=float("nan")):
    scores = ReplacedScores(accuracy=0.9, f1=0.9, accuracy_drop=accuracy_drop, f1_drop=f1_drop)
    return ReplacedAttention(permuted=scores)


def test_a_verdict_follows_the_numbers():
    def told(drop, tau, mixed, far, **more):
        return Audit(
            "m", "d", 90, 0.9, 0.9,
            replaced=permuted(f1_drop=drop),
            agreement=Agreement(gradient_of_words=spread_of(tau)),
            entropy=Entropies(influence=spread_of(mixed)),
            instance=spread_of(far, (far,) * 90),
            **more,
        ).verdict()  # fmt: skip

    assert (
        told(0.3, 0.7, 0.2, 0.1)[-1]
        == "Its attention can be read as an explanation of its answers."
    )
    assert (
        told(0.0, 0.1, 0.9, 0.6)[-1]
        == "Its attention should not be read as an explanation of its answers."
    )
    assert told(0.3, 0.7, 0.9, 0.1)[-1].endswith("with care only: not all tests agree.")
    assert told(0.03, 0.3, 0.5, 0.1)[-1].endswith("with care only: only one test speaks for it.")
    assert (
        told(0.3, 0.7, 0.2, 0.6)[-1]
        == "Its attention can be read as an explanation of its answers."
    )
    assert "as it is with nearly every model" in told(0.3, 0.7, 0.2, 0.6)[3]
    assert told(-0.03, 0.7, 0.2, 0.1)[0].startswith(
        "With its attention weights shuffled among the words F1 rises by 3.0"
    )
    assert "F1 does not fall" in told(-0.0001, 0.7, 0.2, 0.1)[0]
    assert (
        "falls by 5.0 points: answers depend on" in told(0.0496, 0.7, 0.2, 0.1)[0]
    )  # what is compared is printed
    frozen = Adversary("frozen", 1.0, 0.6, 0.1, 0.7, 0.7)
    assert told(0.3, 0.7, 0.2, 0.1, adversaries=(frozen,))[-2].endswith(
        "(JSD 0.60) costs 20.0 points of accuracy."
    )
    assert (
        "not all tests agree"
        in told(0.3, 0.7, 0.2, 0.1, adversaries=(replace(frozen, accuracy=0.9),))[-1]
    )
    assert told(0.3, 0.7, 0.2, 0.1, commonest=0.89)[0].endswith(
        "would be on 89%: there is little to explain."
    )


def test_a_verdict_says_what_is_not_decided():
    none = spread_of(float("nan"), count=0)
    replaced = permuted(f1_drop=float("nan"), accuracy_drop=0.06)
    agreement = Agreement(gradient_of_words=none)
    only = Audit(
        "m", "d", 30, 1.0, float("nan"), replaced=replaced, instance=none, agreement=agreement
    )
    assert only.verdict()[0].endswith(
        "accuracy falls by 6.0 points: answers depend on where attention looks."
    )
    assert len(only.verdict()) == 2 and only.verdict()[-1].endswith("only one test speaks for it.")
    assert "nan" not in " ".join(only.verdict())
    three = replace(only, count=3).verdict()
    assert "depend somewhat" in three[0] and three[-1].endswith("no test decides.")
    tau = spread_of(0.55, low=0.06, high=0.8, count=4)
    few = Audit("m", "d", 4, 1.0, 1.0, agreement=Agreement(gradient_of_words=tau))
    assert few.verdict()[0].endswith("agrees in part with the words' importance by gradients (mean τ-b 0.55, 0.06 to "
                                     "0.80 on 4 texts).")  # fmt: skip
    assert few.verdict()[-1].endswith("no test decides.")
    assert Audit("m", "d", 4, 1.0, 1.0).verdict()[-1].startswith("Too little is defined")

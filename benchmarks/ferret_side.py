"""What ferret takes to measure its own explanations; run by evaluation.py in an environment of ferret's own.

ferret wants transformers below 5 and raison wants 5, so the two can't share one: the model travels as a file of
weights, and the class comes from raison's source, which needs nothing but transformers.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import warnings

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoTokenizer


def main() -> None:
    folder, source = sys.argv[1:3]
    asked = json.load(sys.stdin)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    spec = importlib.util.spec_from_file_location("pooled", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.MeanPooledBert(AutoConfig.from_pretrained(folder)).eval()
    model.load_state_dict(load_file(f"{folder}/weights.safetensors"))
    from ferret.evaluators.faithfulness_measures import (
        AOPC_Comprehensiveness_Evaluation,
        AOPC_Sufficiency_Evaluation,
        TauLOO_Evaluation,
    )
    from ferret.explainers.gradient import GradientExplainer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    explainer = GradientExplainer(model, tokenizer, multiply_by_inputs=True)
    kinds = [AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation, TauLOO_Evaluation]
    evaluators = [kind(model, tokenizer) for kind in kinds]
    made = [explainer(text, target=label) for text, label in zip(asked["texts"], asked["labels"], strict=True)]
    seconds = []
    for _ in range(asked["repeats"]):
        start = time.process_time()
        for one, label in zip(made, asked["labels"], strict=True):
            for evaluator in evaluators:
                evaluator.compute_evaluation(one, target=label)
        seconds.append(time.process_time() - start)
    told = [{"tokens": list(one.tokens), "scores": [float(score) for score in one.scores]} for one in made]
    print(json.dumps({"made": told, "seconds": seconds}))


if __name__ == "__main__":
    main()

"""What ferret takes to measure token scores that it is given; run by evaluation.py in an environment of ferret's own.

ferret wants transformers below 5 and raison wants 5, so the two can't share one: the model travels as a file of
weights, and the class comes from raison's source, which needs nothing but transformers.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import warnings

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoTokenizer


def above_zero(scores: list[float]) -> np.ndarray:
    """Scores with the special tokens', in the same order, all positive: ferret ranks no others.

    Its option only_pos=False, which would, fails in the comparison of an array with a list.
    """
    return np.array([0.0, *(np.array(scores) - min(scores) + 1e-6), 0.0])


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
    from ferret.explainers.explanation import Explanation

    tokenizer = AutoTokenizer.from_pretrained(folder)
    kinds = [AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation, TauLOO_Evaluation]
    evaluators = [kind(model, tokenizer) for kind in kinds]
    begin, end = [tokenizer.cls_token], [tokenizer.sep_token]
    made = [
        Explanation(
            one["text"], begin + one["tokens"] + end, above_zero(one["scores"]), one["method"],
            asked["labels"][int(one["id"])],
        )
        for one in asked["made"]
    ]  # fmt: skip
    seconds = []
    for _ in range(asked["repeats"]):
        start = time.process_time()
        for one in made:
            for evaluator in evaluators:
                evaluator.compute_evaluation(one, target=one.target)
        seconds.append(time.process_time() - start)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()

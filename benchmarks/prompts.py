"""Texts to search rationales in, written for raison: openings that a model continues by itself, and passages.

A rationale explains what a model itself would write, so prompts are cut from the model's own greedy continuations.
"""

from __future__ import annotations

from typing import Any

OPENINGS = (
    "When the ferry reached the island, the captain told the passengers that the harbour was closed and that they",
    "My grandmother kept bees behind the old mill, and every summer she would give each of the neighbours a jar of",
    "The committee met on Thursday to discuss the budget for the new library, which had been delayed by",
    "Marie Curie won the Nobel Prize twice, once in physics and once in",
    "In Japan (where the trains are famous for being on time) most people live in cities, and the largest of them is",
    "The recipe calls for two cups of flour, a pinch of salt, and three eggs. First, whisk the eggs in a",
    "After the storm the electricity was out for three days, so the family cooked on the fire and read by the light of",
    "The patient complained of a sharp pain in the chest, and the doctor ordered an X-ray of the",
    "Her brother plays the violin (he also collects stamps and old coins), and on Sundays he performs with the local",
    "Water boils at a lower temperature in the mountains because the air pressure",
    "The thief climbed over the garden wall, broke a window at the back of the house, and stole the",
    "Paris is the capital of France, Madrid is the capital of Spain, and Rome, which is much older, is the capital of",
    "If you want to learn to swim, you should first learn how to breathe. Then you can practise in the shallow end of",
    "The astronauts closed the hatch, checked the oxygen, and waited for the countdown. Then the rocket",
    "Although the team lost the first two games of the season, the coach told reporters that the players were",
    "The museum has a large collection of Egyptian art, including statues, jewellery and the mummy of a",
    "The programme reads a file, counts the words in it, and prints the ten most common",
    "He opened the letter from the bank with shaking hands. It said that he had to repay the",
    "The old king had three daughters. The eldest was proud, the second was cruel, and the youngest was",
    "To plant a tomato, dig a small hole, add some compost, and put the seedling in the",
    "The river rises in the hills, flows through two lakes, and after three hundred miles it reaches the",
    "In the trial the lawyer asked the witness where she had been on the night of the murder. She answered that she",
    "The teacher wrote a long equation on the board and asked the students to solve for",
    "My neighbour's dog barks whenever the postman comes, but last week it was the cat that",
    "The company said on Monday that profits had fallen by ten percent because of higher prices for",
    "Bees collect nectar from flowers and carry pollen from one plant to another, which helps the plants to",
    "The princess lived in a tower (the tower had no door and only one window), and every night she looked at the",
    "During the winter the lake freezes, and the children of the village go there after school to",
    "The first computer that my father bought had no mouse and no colours, only a black screen with green",
    "Before the concert the musicians tuned their instruments, and the conductor walked to the front of the",
    "In the kitchen of the restaurant the cook (a tall man with a red beard) was shouting because somebody had burnt the",
    "The expedition left the base camp at dawn, carrying ropes and food for four days, and began to climb the",
    "She put the key in the lock, but the door was already open. Inside, somebody had left a cup of",
    "The vaccine was tested on thousands of volunteers before the government allowed doctors to",
    "A triangle has three sides and a square has four sides, so a hexagon has",
    "The farmer sold his cows and bought a tractor, because he wanted to grow",
    "The novel tells the story of a sailor who returns to his village after twenty years and finds that his wife",
    "Scientists have found that people who sleep less than six hours a night are more likely to",
    "On the last day of school (it was raining and nobody had brought an umbrella) the headmaster gave a speech about",
    "The glass fell from the table and broke into a thousand pieces, so she fetched a broom to",
)


def continued(model: Any, text: str, length: int) -> Any:
    """The encoding of a text, continued greedily by the model until it has `length` tokens."""
    import torch

    from raison.types import Example

    ids = model.encode([Example(text)])[0].ids
    settings = {"max_new_tokens": length - len(ids), "do_sample": False, "pad_token_id": 0}
    with torch.inference_mode():
        ids = torch.from_numpy(ids.copy())[None]
        written = model.hf.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0].tolist()
    return written


def prompts(model: Any, lengths: tuple[int, ...]) -> list[list[int]]:
    """Token ids of contexts of the given lengths, each the beginning of what the model itself wrote."""
    found = []
    for opening in OPENINGS:
        written = continued(model, opening, max(lengths) + 1)
        found += [written[: length + 1] for length in lengths if len(written) > length]
    return found

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
    "In the kitchen of the restaurant the cook (a tall man with a red beard) shouted because somebody had burnt the",
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

# name: a passage of about 100 tokens, a question that only this passage answers, and the answer
PASSAGES = {
    "lighthouse": (
        "The lighthouse of Port Ellery stands on a black rock half a mile from the shore. It was built by the "
        "harbour guild in 1874 after a winter in which eleven boats were lost. The tower is painted in red and "
        "white bands so that sailors can see it by day. For many years a family of six lived in the rooms under "
        "the lamp. They kept goats on the rock and rowed to the village once a week for flour and letters. Today "
        "the lamp turns by itself and visitors may climb the stairs in summer.",
        "In which year was the lighthouse of Port Ellery built?",
        "1874",
    ),
    "bakery": (
        "The bakery in Mill Lane opens long before the sun is up. Its owner is called Tobias Renner, and he "
        "learned the trade from an aunt who had no children. The oven is older than the house and has to be fed "
        "with beech wood. On Fridays there is a dark loaf with walnuts that people order a week ahead. The shop "
        "has only one small table where two guests can drink coffee. Once a year the street is closed and "
        "everybody eats cake at long benches in front of the door.",
        "What is the name of the owner of the bakery in Mill Lane?",
        "Tobias Renner",
    ),
    "clock": (
        "The clock on the town hall of Greysted is known for being late. It has a blue face with golden hands, and "
        "a wooden rooster comes out of a window at noon. The rooster was carved by a prisoner who was later set "
        "free. Twice the council has voted to repair the clock, and twice the money went to the school roof "
        "instead. People in the market have become used to it and simply add seven minutes. Strangers, however, "
        "often miss the bus that leaves from the square below.",
        "What is the clock on the town hall of Greysted known for?",
        "being late",
    ),
    "river": (
        "The river Sannow begins in a wet meadow and is at first so narrow that a child can jump over it. In the "
        "hills it turns two old saw mills, one of which is now an inn. Otters came back to the upper valley some "
        "years ago. Below the town of Harn the water grows slow and brown, and flat boats carry gravel to the "
        "coast. In spring the fields on both sides are flooded, and herons stand there in long rows. At its mouth "
        "the river is almost a mile wide.",
        "Which animals came back to the upper valley of the river Sannow?",
        "Otters",
    ),
    "museum": (
        "The museum of everyday things in Oldbrook fills a former railway station. Its most famous object is a "
        "green bicycle on which a nurse rode to her patients for forty years. In the next room there are irons, "
        "kettles, radios and a wall of alarm clocks. Children like the drawers that may be opened, because each of "
        "them has a different smell. The entrance is free, but guests are asked to leave one small thing behind. "
        "In this way the collection has grown to more than nine thousand pieces.",
        "What is the most famous object of the museum in Oldbrook?",
        "green bicycle",
    ),
    "island": (
        "The island of Maar has no cars and only one paved path. About two hundred people live there all year, "
        "most of them in the village behind the dunes. They sell a soft cheese made from the milk of brown sheep. "
        "The ferry comes on Tuesdays and Saturdays, unless the wind is from the north. There is a school with a "
        "single room in which nine children are taught together. On the highest hill stands a stone bench from "
        "which one can see the mainland on clear days.",
        "From the milk of which animals is the cheese of Maar made?",
        "sheep",
    ),
    "library": (
        "The library of the college at Wend was founded with the books of a retired judge. It is kept in a round "
        "hall with a gallery that can be reached by a spiral staircase. The reading desks are made of cherry wood "
        "and have brass lamps. Nobody may bring in ink, since a student once spilled some on a map of the moon. "
        "The cat of the house is called Comma and sleeps on the returned books. In the cellar there are newspapers "
        "from two hundred years, bound in grey linen.",
        "What are the reading desks in the library at Wend made of?",
        "cherry wood",
    ),
    "bridge": (
        "The bridge at Tolland was the work of an engineer named Agnes Whitlow, who had never built one before. It "
        "crosses the gorge in a single arch and carries a narrow road. During the first winter people were afraid "
        "of it and went the long way round. A brass band of thirty men then marched across to show that it would "
        "hold. Swifts nest under the arch and hunt above the water in the evening. The toll house at the western "
        "end is now a shop for walking sticks.",
        "What is the name of the engineer of the bridge at Tolland?",
        "Agnes Whitlow",
    ),
    "garden": (
        "The botanical garden in Lissen lies on the southern slope of the castle hill. It has a glass house for "
        "palms, a pond with lilies and a long border of herbs. The oldest tree is a mulberry that was planted for "
        "the silk of its worms. School classes come in May to draw tulips and to count bees. In the evening the "
        "gate is closed by a guard who rings a small hand bell. The garden sells seeds by post and answers every "
        "letter with a pressed leaf.",
        "What is the oldest tree in the botanical garden in Lissen?",
        "mulberry",
    ),
    "train": (
        "The night train to Corvina leaves from platform nine shortly after eleven. It has four sleeping cars, a "
        "carriage for bicycles and a kitchen that serves soup until midnight. The conductor wakes the passengers "
        "with tea and a biscuit at the border. In winter a snow plough goes ahead over the pass, and the journey "
        "takes two hours longer. Students often play cards in the corridor because the lights there are never "
        "switched off. In the morning the train runs along the sea for a while.",
        "From which platform does the night train to Corvina leave?",
        "nine",
    ),
}


def continued(model: Any, text: str, length: int) -> list[int]:
    """Token ids of a text, continued greedily by the model until it has `length` tokens."""
    import torch

    from raison.core.records import Example

    ids = model.encode([Example(text)])[0].ids
    settings = {"max_new_tokens": length - len(ids), "do_sample": False, "pad_token_id": 0}
    with torch.inference_mode():
        ids = torch.from_numpy(ids.copy())[None]
        written = model.hf.generate(ids, attention_mask=torch.ones_like(ids), **settings)[
            0
        ].tolist()
    return written


def prompts(model: Any, lengths: tuple[int, ...]) -> list[list[int]]:
    """Token ids of contexts of the given lengths, each the beginning of what the model itself wrote."""
    found = []
    for opening in OPENINGS:
        written = continued(model, opening, max(lengths) + 1)
        found += [written[: length + 1] for length in lengths if len(written) > length]
    return found

"""Rationales: the smallest part of a context that alone makes the model predict the same (P0, Vafa et al. 2021).

`problem` is what is asked, `sufficient` when a context is enough, `search` the one loop that asks the model for all
problems at once; each policy (greedy, exact, refined, by_order, hierarchical) is a generator in a file of its own;
`certificate` checks what was found.
"""

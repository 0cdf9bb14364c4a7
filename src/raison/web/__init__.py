"""The page in the browser: a server that hands out `page` and answers a few questions about named models."""

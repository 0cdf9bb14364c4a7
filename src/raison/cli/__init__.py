"""The command line: one command per file, results on stdout, everything else on stderr.

Nothing heavy is imported before a command runs, so that `raison --help` answers at once.
"""

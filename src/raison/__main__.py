"""python -m raison"""

from raison.cli.app import main

main()

"""The module's memory, by valgrind: `make memcheck`.

tour.py        a session that comes to every command, and to what servers do with values
valgrind.py    a server under it, and what it says of the module
check_memory.py  the tests. Not named as others are: they take minutes
"""

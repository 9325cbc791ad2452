"""Plays the contract with a client's test program (README.md).

program    starts a test program and talks with it
typed      a command line as a typed call, and a typed reply as the server's
pages      sessions of docs/, played through a client
scenario   what a worker does, played step by step
"""

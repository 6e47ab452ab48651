"""stall.py FOLDER PORT: listens on PORT until FOLDER/close is there, and lives on.

Without the marker of a run, this is a stranger with the same command line, and
listens on nothing.
"""
import os
import socket
import sys
import time

folder, port = sys.argv[1], int(sys.argv[2])
if "HOB_RUN_ID" in os.environ:
    listener = socket.create_server(("127.0.0.1", port))
    listener.settimeout(0.01)
    taken = []
    while not os.path.exists(folder + "/close"):
        try:
            taken.append(listener.accept())
        except TimeoutError:
            pass
    listener.close()
    open(folder + "/closed", "w").close()
time.sleep(600)

"""changer.py FOLDER: it becomes another program when it is told to by USR1.

FOLDER/can-change.PID is there once it listens to that signal; before, it would die of it.
"""
import os
import signal
import sys
import time

signal.signal(signal.SIGUSR1, lambda *_: os.execvp("sleep", ["sleep", "86481"]))
open(f"{sys.argv[1]}/can-change.{os.getpid()}", "w").close()
while True:
    time.sleep(1)

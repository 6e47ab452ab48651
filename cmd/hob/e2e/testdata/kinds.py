"""kinds.py FOLDER WORD...: a server, and the kinds of children that outlive one.

Each process writes its pid to a file of its name in FOLDER once it is what it is
called. FOLDER stands in the command line of all of them, also of those that have
cleared their environment, so that a test can find what is left.

WORD "hold": on TERM the server ends only when FOLDER/release is there.
WORD "later": the kinds are only made when FOLDER/go is there.
In a process without the marker of a run, this is a stranger with the same
command line.
"""
import os
import signal
import sys
import time

FOLDER = sys.argv[1]
WORDS = sys.argv[2:]


def note(name):
    path = os.path.join(FOLDER, name)
    with open(path + ".part", "w") as f:
        f.write(str(os.getpid()))
    os.rename(path + ".part", path)


def rest(name):
    note(name)
    while True:
        time.sleep(600)


def child(become):
    """Forks. The child becomes something and never returns."""
    if os.fork() == 0:
        try:
            become()
        finally:
            os._exit(9)


def orphan(become, session):
    """Forks twice, the parent of the second ends at once."""
    pid = os.fork()
    if pid == 0:
        if session:
            os.setsid()
        child(become)
        os._exit(0)
    os.waitpid(pid, 0)


def ignore(*names):
    for name in names:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def pgrp():
    os.setpgid(0, 0)
    rest("pgrp")


def nohup():
    ignore("SIGHUP")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    rest("nohup")


def setsid():
    os.setsid()
    rest("setsid")


def deaf():
    os.setsid()
    ignore("SIGHUP")
    rest("setsid-nohup")


def noenv():
    note("daemon-noenv")
    os.execve("/bin/sleep", [FOLDER + "/noenv", "600"], {})


def title():
    from setproctitle import setproctitle
    setproctitle("vllm::worker " + FOLDER)
    child(lambda: rest("daemon-title-fork"))
    child(titled_exec)
    rest("daemon-title")


def titled_exec():
    note("daemon-title-exec")
    os.execv("/bin/sleep", [FOLDER + "/exec", "600"])


def uid():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    rest("daemon-uid")


def cgroup():
    with open(os.environ["OTHER_CGROUP"] + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))
    rest("daemon-cgroup")


def kinds():
    child(lambda: rest("plain"))
    child(pgrp)
    child(nohup)
    child(setsid)
    child(deaf)
    orphan(lambda: rest("orphan"), session=False)
    orphan(lambda: rest("daemon"), session=True)
    orphan(noenv, session=True)
    orphan(title, session=True)
    if os.getuid() == 0:
        orphan(uid, session=True)
    if "OTHER_CGROUP" in os.environ:
        orphan(cgroup, session=True)


def wait_for(name):
    while not os.path.exists(os.path.join(FOLDER, name)):
        time.sleep(0.01)


def held(*_):
    note("told")
    wait_for("release")
    os._exit(0)


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "HOB_RUN_ID" not in os.environ:
        rest("decoy")
    note("main")
    if "later" in WORDS:
        wait_for("go")
    kinds()
    if "hold" in WORDS:
        signal.signal(signal.SIGTERM, held)
    rest("made")


main()

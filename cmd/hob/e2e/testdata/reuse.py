"""reuse.py HOB D TASKDIR: pid 1 of a pid namespace, in which it chooses numbers.

A task's session leader ends, its keeper too, and a stranger becomes the leader of a
session of the very same number, with another stranger in it. Then hob stops the
task. What became of whom is written as JSON.
"""
import json
import os
import signal
import subprocess
import sys
import time

hob, d, task = sys.argv[1:]


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def until(what, done):
    end = time.time() + 30
    while not done():
        if time.time() > end:
            sys.exit("waited in vain for " + what)
        time.sleep(0.01)


def read(name):
    with open(task + "/" + name) as f:
        return json.load(f)


def captured(pid):
    """Whether the capture has it as the leader of a session. The first comes with a look."""
    try:
        members = read("capture.json")["members"]
    except FileNotFoundError:
        return False
    return any(m["ref"]["pid"] == pid and m["sid"] == pid for m in members)


def alive(pid):
    reap()
    return os.path.exists("/proc/%d" % pid)


def end(pid):
    os.kill(pid, signal.SIGKILL)
    until("the end of %d" % pid, lambda: not alive(pid))


def strangers(number):
    """The leader and a member of a session with this number."""
    for _ in range(2000):
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(number - 1))
        pid = os.fork()
        if pid == 0:
            if os.getpid() != number:
                os._exit(0)
            os.setsid()
            if os.fork() == 0:
                with open(d + "/member", "w") as f:
                    f.write(str(os.getpid()))
                os.execve("/bin/sleep", ["sleep", "86461"], {})
            os.execve("/bin/sleep", ["sleep", "86460"], {})
        if pid == number:
            until("the stranger", lambda: os.path.exists(d + "/member") and os.path.getsize(d + "/member") > 0)
            with open(d + "/member") as f:
                return pid, int(f.read())
        os.waitpid(pid, 0)
    sys.exit("the number could not be had")


subprocess.run([hob, "up"], check=True, stdout=sys.stderr)
until("the leader", lambda: os.path.exists(d + "/leader") and os.path.getsize(d + "/leader") > 0)
with open(d + "/leader") as f:
    leader = int(f.read())
until("the capture", lambda: captured(leader))
end(read("keeper.json")["keeper"]["pid"])
end(leader)
first, second = strangers(leader)
down = subprocess.run([hob, "down", "--json", "m"], stdout=subprocess.PIPE)
print(json.dumps({
    "code": down.returncode,
    "sid": os.getsid(second) if alive(second) else 0,
    "leader": leader,
    "alive": [alive(first), alive(second)],
    "reports": json.loads(down.stdout),
}))

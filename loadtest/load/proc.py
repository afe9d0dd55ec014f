# SPDX-License-Identifier: Apache-2.0
"""What /proc says of processes and of the machine."""
import os

TICK = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
KERNEL_STACK_KB = 16


def stat(pid):
    """(user+system seconds, of ended children, minor and major faults)."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    ours = (int(fields[11]) + int(fields[12])) / TICK
    ended = (int(fields[13]) + int(fields[14])) / TICK
    return ours, ended, int(fields[7]), int(fields[9])


def cpu(pid, children=()):
    """Seconds of a server and its children, dead ones too."""
    total = 0.0
    try:
        ours, ended, _, _ = stat(pid)
        total = ours + ended
    except OSError:
        return 0.0
    for child in children:
        try:
            total += stat(child)[0]
        except OSError:
            pass
    return total


def faults(pids):
    """Major faults of those alive."""
    total = 0
    for pid in pids:
        try:
            total += stat(pid)[3]
        except OSError:
            pass
    return total


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def allowed_cpus(pids):
    """Where these may run, each list once."""
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as file:
                found |= {line.split()[1] for line in file
                          if line.startswith("Cpus_allowed_list")}
        except OSError:
            pass
    return found


def mappings(pid):
    """One {"Rss": KiB, ...} a mapping."""
    found = []
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                found.append({})
            elif len(words) >= 2 and words[1].isdigit():
                found[-1][words[0][:-1]] = int(words[1])
    return found


def private(seen):
    """Of a mapping, what is the process's own and nobody else's: no pages that
    it still shares with its parent, and none of a file. A page of a file that
    only this worker happens to have touched says Private_Clean (Private_Dirty
    in a file system in memory), but it is the file's, and its next reader has
    it for nothing."""
    return min(seen.get("Private_Clean", 0) + seen.get("Private_Dirty", 0),
               seen.get("Anonymous", 0))


def memory(pid):
    """KiB: private (own anonymous memory), proportional, resident, marginal
    (what one more worker takes: its own pages, its page tables, its kernel
    stack)."""
    seen = mappings(pid)
    with open(f"/proc/{pid}/status") as file:
        tables = next((int(line.split()[1]) for line in file
                       if line.startswith("VmPTE")), 0)
    own = sum(map(private, seen))
    return {"private": own,
            "proportional": sum(one.get("Pss", 0) for one in seen),
            "resident": sum(one.get("Rss", 0) for one in seen),
            "marginal": own + tables + KERNEL_STACK_KB}


def workers_memory(pids):
    """Of all workers: the median and the largest of each kind, KiB."""
    seen = []
    for pid in pids:
        try:
            seen.append(memory(pid))
        except OSError:
            pass
    if not seen:
        return None
    made = {"workers": len(seen)}
    for kind in ("private", "proportional", "resident", "marginal"):
        values = sorted(one[kind] for one in seen)
        made[kind] = {"median": values[len(values) // 2], "max": values[-1],
                      "sum": sum(values)}
    return made


def meminfo():
    """KiB."""
    with open("/proc/meminfo") as file:
        return {line.split(":")[0]: int(line.split()[1]) for line in file}


def vmstat():
    with open("/proc/vmstat") as file:
        return {name: int(value) for name, value in
                (line.split() for line in file)}


def listen_queue(port):
    """(connections waiting to be accepted, how many may), or None."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path) as file:
                next(file)
                for line in file:
                    words = line.split()
                    if words[3] == "0A" and \
                            int(words[1].rsplit(":", 1)[1], 16) == port:
                        most, waiting = (int(part, 16) for part in
                                         words[4].split(":"))
                        return waiting, most
        except OSError:
            pass
    return None


def overflows():
    """(ListenOverflows, ListenDrops) of this machine so far."""
    with open("/proc/net/netstat") as file:
        lines = file.read().splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        if names.startswith("TcpExt:"):
            found = dict(zip(names.split()[1:], values.split()[1:]))
            return int(found["ListenOverflows"]), int(found["ListenDrops"])
    return 0, 0


def busy_cpu():
    """(busy, all) seconds of all CPUs since boot."""
    with open("/proc/stat") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK, sum(fields) / TICK

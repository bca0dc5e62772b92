#! /usr/bin/env python3
# Copyright (c) 2026 The PlanB for Open vSwitch Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at:
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""Forwards a real IPv6 routing table with Open vSwitch, with and without
PlanB, and measures and checks it.

This is the second half of planb-demo, which sets up the machine and builds
before it starts this.  It uses nothing but Python's standard library.
"""

import argparse
import collections
import contextlib
import glob
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

N_HOPS = 16                     # Next hops.
TABLE = 10                      # The OpenFlow table with the routes.
BRIDGE = "br-planb"
DATAPATH = "netdev@ovs-netdev"
RX, TX = 1, 2                   # OpenFlow port numbers.
PRIMER_TYPE = b"\x88\xb5"       # For local experiments.
PRIMER_RULE = "table=0,in_port=%d,dl_type=0x88b5" % RX
NULL_DEVICE = "net_null_planb,no-rx=1"
SRC_ADDR = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
ROUTER_MAC = bytes.fromhex("020000000001")
HOST_MAC = bytes.fromhex("020000000002")
FRAME_LEN = 64                  # With two bytes that number the packets.

# Memory for DPDK, in MB.  Open vSwitch gives its ports 262,144 buffers when it
# can, and the port that replays keeps its packets in them.
DPDK_MB = 1024
HUGEPAGE_MB = 2
MAX_FLOWS = 200000

# How many megaflows there may be besides one for each route class.
SPARE_MEGAFLOWS = 8


class DemoError(Exception):
    """What the demo fails with, for its last line."""


def say(text=""):
    print(text, flush=True)


def step(text):
    say("planb-demo: " + text)


def nexthop_mac(hop):
    return bytes([0x02, 0, 0, 0, 1, hop])


def mac_string(mac):
    return ":".join("%02x" % b for b in mac)


class Route(collections.namedtuple("Route", "prefix plen hop")):
    """A prefix (an integer whose host bits are zero), its length and the
    number of its next hop."""

    @property
    def priority(self):
        return 1000 + self.plen

    def __str__(self):
        return "%s/%d" % (
            socket.inet_ntop(socket.AF_INET6, self.prefix.to_bytes(16, "big")),
            self.plen)


def network_mask(plen):
    return (1 << 128) - (1 << (128 - plen))


def parse_prefix(text):
    addr, slash, plen = text.partition("/")
    if not slash or not plen.isdigit() or int(plen) > 128:
        raise ValueError("%s: not an IPv6 prefix" % text)
    try:
        prefix = int.from_bytes(socket.inet_pton(socket.AF_INET6, addr), "big")
    except OSError:
        raise ValueError("%s: not an IPv6 prefix" % text) from None
    if prefix & ~network_mask(int(plen)):
        raise ValueError("%s: bits past the prefix length" % text)
    return prefix, int(plen)


def dump_routes(path):
    """Writes the IPv6 prefixes with an origin AS of the location database to
    'path'."""
    net = None
    n = 0
    with subprocess.Popen(["location", "dump"], stdout=subprocess.PIPE,
                          text=True, errors="replace") as dump, \
            open(path + ".tmp", "w") as out:
        for line in dump.stdout:
            if line.startswith("net:"):
                net = line.split()[1]
            elif line.startswith("aut-num:") and net is not None:
                if ":" in net:
                    out.write(net + "\n")
                    n += 1
                net = None
            elif not line.strip():
                net = None
    if dump.returncode or not n:
        raise DemoError("location dump: failed")
    os.rename(path + ".tmp", path)


def read_routes(path):
    """Reads a line "PREFIX [NEXTHOP]" for each route from 'path'."""
    routes = {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                key = parse_prefix(words[0])
                if len(words) > 1:
                    hop = int(words[1])
                else:
                    # As good as chance, and the same each time.
                    hop = zlib.crc32(words[0].encode()) % N_HOPS
                if not 0 <= hop < N_HOPS:
                    raise ValueError("next hop %d: must be 0 to %d"
                                     % (hop, N_HOPS - 1))
            except ValueError as e:
                raise DemoError("%s:%d: %s" % (path, number, e)) from None
            routes[key] = Route(key[0], key[1], hop)
    if not routes:
        raise DemoError("%s: no routes" % path)
    return [routes[key] for key in sorted(routes)]


class Oracle:
    """Longest prefix match the plain way: what the packets are judged by."""

    def __init__(self, routes):
        by_plen = collections.defaultdict(dict)
        for route in routes:
            by_plen[route.plen][route.prefix] = route
        self.levels = [(network_mask(plen), by_plen[plen])
                       for plen in sorted(by_plen, reverse=True)]

    def lookup(self, addr):
        for mask, prefixes in self.levels:
            route = prefixes.get(addr & mask)
            if route is not None:
                return route
        return None


def udp_checksum(src, dst, udp):
    data = src + dst + struct.pack("!IHBB", len(udp), 0, 0, 17) + udp
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff or 0xffff


def make_frame(index, dst):
    payload = struct.pack("!H", index & 0xffff)
    sport, dport = 1024 + (index >> 16), 9
    udp = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload
    checksum = udp_checksum(SRC_ADDR, dst, udp)
    udp = udp[:6] + struct.pack("!H", checksum) + udp[8:]
    return (ROUTER_MAC + HOST_MAC + b"\x86\xdd"
            + struct.pack("!IHBB", 6 << 28, len(udp), 17, 64)
            + SRC_ADDR + dst + udp)


def forwarded_frame(frame, hop):
    """What a router makes of 'frame'."""
    return (nexthop_mac(hop) + frame[6:21] + bytes([frame[21] - 1])
            + frame[22:])


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)))
            f.write(frame)


def read_pcap(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:4] == b"\xd4\xc3\xb2\xa1" or data[:4] == b"\x4d\x3c\xb2\xa1":
        order = "<"
    else:
        order = ">"
    offset = 24
    while offset + 16 <= len(data):
        caplen, = struct.unpack_from(order + "I", data, offset + 8)
        offset += 16
        yield data[offset:offset + caplen]
        offset += caplen


Row = collections.namedtuple("Row", "title mpps note")


def write_svg(path, title, rows):
    """Writes a bar chart of 'rows' to 'path'."""
    width, left, bar, gap, top = 760, 130, 26, 14, 50
    scale = (width - left - 230) / max(row.mpps for row in rows)
    height = top + len(rows) * (bar + gap) + 10
    with open(path, "w") as f:
        f.write("<svg xmlns='http://www.w3.org/2000/svg' width='%d' "
                "height='%d' font-family='sans-serif' font-size='14'>\n"
                "<rect width='100%%' height='100%%' fill='white'/>\n"
                "<text x='%d' y='28' font-size='16'>%s</text>\n"
                % (width, height, left, title))
        for i, row in enumerate(rows):
            y = top + i * (bar + gap)
            text_y = y + bar * 2 // 3
            length = max(1, row.mpps * scale)
            f.write("<text x='%d' y='%d' text-anchor='end'>%s</text>\n"
                    "<rect x='%d' y='%d' width='%.1f' height='%d' "
                    "fill='%s'/>\n"
                    "<text x='%.1f' y='%d'>%.2f Mpps, %s</text>\n"
                    % (left - 8, text_y, row.title, left, y, length, bar,
                       "#c60" if row.title == "PlanB" else "#79a",
                       left + length + 8, text_y, row.mpps, row.note))
        f.write("</svg>\n")


class Hugepages:
    """Sees to huge pages where the kernel lets us, and gives them back."""

    PATH = "/sys/kernel/mm/hugepages/hugepages-%dkB" % (HUGEPAGE_MB * 1024)

    def __init__(self):
        self.old = None

    def _read(self, name):
        with open(os.path.join(self.PATH, name)) as f:
            return int(f.read())

    def _write(self, n):
        with open(os.path.join(self.PATH, "nr_hugepages"), "w") as f:
            f.write("%d\n" % n)

    def get(self):
        """Returns true if enough of them are free for us."""
        # Open vSwitch takes some besides what it is told to.
        need = DPDK_MB // HUGEPAGE_MB * 5 // 4
        try:
            free = self._read("free_hugepages")
            if free >= need:
                return True
            old = self._read("nr_hugepages")
            self.old = old
            self._write(old + need - free)
            if self._read("free_hugepages") >= need:
                return True
        except (OSError, ValueError):
            pass
        self.put()
        return False

    def put(self):
        if self.old is not None:
            with contextlib.suppress(OSError):
                self._write(self.old)
            self.old = None


class Switch:
    """A private ovsdb-server and ovs-vswitchd."""

    def __init__(self, ovs, workdir):
        self.ovs = ovs
        self.dir = workdir
        self.children = []
        self.env = dict(os.environ, OVS_RUNDIR=workdir, OVS_LOGDIR=workdir,
                        OVS_DBDIR=workdir, OVS_SYSCONFDIR=workdir)
        self.ctl = os.path.join(workdir, "ovs-vswitchd.ctl")
        self.pmd_core = None
        self.hugepages = Hugepages()
        self.huge = False

    def command(self, name):
        for directory in "utilities", "ovsdb", "vswitchd":
            path = os.path.join(self.ovs, directory, name)
            if os.path.exists(path):
                return path
        raise DemoError("%s: not found in %s" % (name, self.ovs))

    def run(self, name, *args):
        try:
            done = subprocess.run([self.command(name)] + list(args),
                                  env=self.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  timeout=300)
        except subprocess.TimeoutExpired:
            raise DemoError("%s %s: no answer" % (name, args[0])) from None
        if done.returncode:
            raise DemoError("%s %s: %s" % (
                name, " ".join(args), done.stderr.strip()[-500:]))
        return done.stdout

    def vsctl(self, *args):
        return self.run("ovs-vsctl", "--timeout=120",
                        "--db=unix:%s/db.sock" % self.dir, *args)

    def ofctl(self, *args):
        return self.run("ovs-ofctl", "-O", "OpenFlow14", *args)

    def appctl(self, method, *args):
        """ovs-appctl, but without a new process each time: some of its
        answers are wanted many times a second."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(300)
            try:
                sock.connect(self.ctl)
                sock.sendall(json.dumps({"id": 0, "method": method,
                                         "params": args}).encode())
                data = b""
                while True:
                    chunk = sock.recv(1 << 20)
                    data += chunk
                    try:
                        reply = json.loads(data)
                        break
                    except ValueError:
                        if not chunk:
                            raise OSError("connection closed") from None
            except OSError as e:
                raise DemoError("ovs-vswitchd: %s: %s" % (method, e)) from None
        if reply["error"]:
            raise DemoError("%s: %s" % (method, reply["error"].strip()))
        return reply["result"]

    def _spawn(self, name, *args):
        log = open(os.path.join(self.dir, name + ".out"), "w")
        with log:
            child = subprocess.Popen(
                [self.command(name)] + list(args), env=self.env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        self.children.append(child)
        return child

    def _wait_for(self, path, child):
        for _ in range(600):
            if os.path.exists(path):
                return
            if child.poll() is not None:
                break
            time.sleep(.1)
        raise DemoError("%s does not start; the end of its log:\n%s" % (
            os.path.basename(child.args[0]), self.log_tail()))

    def log_tail(self, n=15):
        lines = []
        for name in sorted(glob.glob(self.dir + "/*.log")
                           + glob.glob(self.dir + "/*.out")):
            with open(name, errors="replace") as f:
                lines += f.read().splitlines()[-n:]
        return "\n".join(lines)

    def start(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            raise DemoError("needs two CPUs, one of them for forwarding alone")
        self.pmd_core = cpus[-1]
        self.huge = self.hugepages.get()

        db = os.path.join(self.dir, "conf.db")
        self.run("ovsdb-tool", "create", db,
                 os.path.join(self.ovs, "vswitchd", "vswitch.ovsschema"))
        child = self._spawn(
            "ovsdb-server", db, "--remote=punix:%s/db.sock" % self.dir,
            "--unixctl=%s/ovsdb-server.ctl" % self.dir, "--log-file",
            "--pidfile", "-vconsole:off")
        self._wait_for(self.dir + "/db.sock", child)

        extra = "--no-pci --file-prefix=planb-demo-%d" % os.getpid()
        if not self.huge:
            extra += " --no-huge --legacy-mem -m %d" % DPDK_MB
        settings = ["other_config:dpdk-init=true",
                    "other_config:dpdk-lcore-mask=%#x" % (1 << cpus[0]),
                    "other_config:pmd-cpu-mask=%#x" % (1 << self.pmd_core),
                    "other_config:dpdk-extra=\"%s\"" % extra,
                    # Every flow is in the datapath's classifier, none in
                    # the exact match cache: 65,536 flows do not fit it.
                    "other_config:emc-insert-inv-prob=0"]
        if self.huge:
            settings.append("other_config:dpdk-socket-mem=%d" % DPDK_MB)
        self.vsctl("--no-wait", "--", "init", "--", "set", "Open_vSwitch",
                   ".", *settings)
        child = self._spawn(
            "ovs-vswitchd", "unix:%s/db.sock" % self.dir,
            "--unixctl=" + self.ctl, "--log-file", "--pidfile",
            "-vconsole:off")
        self._wait_for(self.ctl, child)
        self.vsctl("add-br", BRIDGE, "--", "set", "Bridge", BRIDGE,
                   "datapath_type=netdev", "fail-mode=secure",
                   "protocols=OpenFlow10,OpenFlow14")
        if self.vsctl("get", "Open_vSwitch", ".",
                      "dpdk_initialized").strip() != "true":
            raise DemoError("DPDK does not start; the end of the log:\n"
                            + self.log_tail())

    def add_port(self, name, ofport, devargs):
        self.vsctl("add-port", BRIDGE, name, "--", "set", "Interface", name,
                   "type=dpdk", "ofport_request=%d" % ofport,
                   "options:dpdk-devargs=\"%s\"" % devargs)
        error = self.vsctl("get", "Interface", name, "error").strip()
        if error not in ("[]", '""'):
            raise DemoError("port %s: %s" % (name, error))
        got = self.vsctl("get", "Interface", name, "ofport").strip()
        if got != str(ofport):
            raise DemoError("port %s: has number %s, not %d"
                            % (name, got, ofport))

    def del_port(self, name):
        self.vsctl("--if-exists", "del-port", BRIDGE, name)

    def tx_packets(self, port):
        """Packets that have left from 'port'."""
        show = self.appctl("dpctl/show", "-s", DATAPATH)
        m = re.search(r"^ *port \d+: %s \(.*?TX packets:(\d+)" % port, show,
                      re.M | re.S)
        return int(m.group(1)) if m else 0

    def n_megaflows(self):
        """Megaflows of packets that come from DPDK ports.  The bridge's own
        port has some too, when the kernel sends something there."""
        show = self.appctl("dpctl/show", DATAPATH)
        n = int(re.search(r"flows: (\d+)", show).group(1))
        if n > 1000:
            # Too many to look at each, and to make a difference.
            return n
        local = re.search(r"port (\d+): %s " % BRIDGE, show).group(1)
        return sum("in_port(" in flow and "in_port(%s)" % local not in flow
                   for flow in self.appctl("dpctl/dump-flows",
                                           DATAPATH).splitlines())

    def n_masks(self):
        m = re.search(r"avg\. subtable lookups per megaflow hit: ([0-9.]+)",
                      self.appctl("dpif-netdev/pmd-stats-show"))
        return float(m.group(1)) if m else 0.

    def misses(self):
        # Open vSwitch calls it a failure when it installs no megaflow.
        stats = self.appctl("dpif-netdev/pmd-stats-show")
        return sum(int(n) for n in
                   re.findall(r"miss with [a-z]+ upcall: (\d+)", stats))

    def stop(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        self.children = []
        self.hugepages.put()


class Demo:
    def __init__(self, args, workdir):
        self.args = args
        self.dir = workdir
        self.sw = Switch(args.ovs, workdir)
        self.routes = []
        self.frames = []
        self.expected = []      # The route of each frame.
        self.rates = collections.defaultdict(list)
        self.megaflows = {}
        self.classes = 0
        self.show = ""
        self.before = self.after = {}   # Of a replay: route counters,
        self.verify = ""                # and what planb/verify said.

    # Preparation.

    def read_routes(self):
        path = self.args.routes
        if not path:
            path = os.path.join(self.args.cache, "routes.txt")
            database = "/var/lib/location/database.db"
            if not os.path.exists(path) or (
                    os.path.exists(database)
                    and os.path.getmtime(database) > os.path.getmtime(path)):
                step("taking the IPv6 routes from the location database")
                os.makedirs(self.args.cache, exist_ok=True)
                dump_routes(path)
        self.routes = read_routes(path)
        step("%d routes from %s" % (len(self.routes), path))

    def make_packets(self):
        step("making %d packets to addresses inside them" % self.args.flows)
        rng = random.Random(1)
        oracle = Oracle(self.routes)
        chosen = rng.sample(self.routes, min(self.args.flows,
                                             len(self.routes)))
        while len(chosen) < self.args.flows:
            chosen.append(rng.choice(self.routes))
        for index, route in enumerate(chosen):
            host = rng.getrandbits(128) & ~network_mask(route.plen)
            addr = route.prefix | host
            self.frames.append(make_frame(index, addr.to_bytes(16, "big")))
            self.expected.append(oracle.lookup(addr))
        write_pcap(self.dir + "/in.pcap", self.frames)

    def load(self):
        step("starting ovsdb-server and ovs-vswitchd in %s" % self.dir)
        self.sw.start()
        step("forwarding on CPU %d, memory in %s" % (
            self.sw.pmd_core, "huge pages" if self.sw.huge
            else "ordinary pages (huge pages are not to be had)"))
        self.sw.add_port("out", TX, NULL_DEVICE)

        step("loading %d flows" % len(self.routes))
        path = self.dir + "/flows.txt"
        with open(path, "w") as f:
            f.write("table=0,priority=10,in_port=%d,ipv6,"
                    "actions=goto_table:%d\n" % (RX, TABLE))
            for r in self.routes:
                f.write("table=%d,priority=%d,ipv6,ipv6_dst=%s,"
                        "actions=mod_dl_dst:%s,dec_ttl,output:%d\n" % (
                            TABLE, r.priority, r,
                            mac_string(nexthop_mac(r.hop)), TX))
        start = time.monotonic()
        self.sw.ofctl("--bundle", "add-flows", BRIDGE, path)
        step("  took %.1f s" % (time.monotonic() - start))
        # The best that the stock path can do: prefix tries for IPv6
        # destinations are not the default in Open vSwitch 3.1.
        self.sw.vsctl("--", "--id=@ft", "create", "Flow_Table",
                      "prefixes=ipv6_dst", "--", "set", "Bridge", BRIDGE,
                      "flow_tables:%d=@ft" % TABLE)

    # Traffic.

    def start_traffic(self):
        self.sw.add_port("in", RX, "net_pcap_planb,rx_pcap=%s/in.pcap,"
                         "infinite_rx=1" % self.dir)

    def stop_traffic(self):
        """Stops it, and waits until its megaflows are gone."""
        self.sw.del_port("in")
        deadline = time.monotonic() + 120
        while self.sw.n_megaflows():
            if time.monotonic() > deadline:
                raise DemoError("megaflows stay though their port is gone")
            time.sleep(.2)

    def rate(self, seconds):
        """Returns million packets per second that leave the switch."""
        n0, t0 = self.sw.tx_packets("out"), time.monotonic()
        time.sleep(seconds)
        n1, t1 = self.sw.tx_packets("out"), time.monotonic()
        if n1 == n0:
            raise DemoError("nothing is forwarded")
        return (n1 - n0) / (t1 - t0) / 1e6

    def first_pass(self):
        """Starts the traffic and returns the rate at which the packets pass
        for the first time, when the datapath knows none of them."""
        before = self.sw.tx_packets("out")
        self.start_traffic()
        start = last = None
        limit = time.monotonic() + max(self.args.seconds, 10)
        while True:
            now = time.monotonic()
            n = self.sw.tx_packets("out") - before
            if n and start is None:
                # The packets up to now are left out, with their time.
                start = (n, now)
            elif start is not None:
                if n >= len(self.frames) or now > limit:
                    break
                last = (n, now)
            elif now > limit:
                raise DemoError("nothing is forwarded")
            time.sleep(.002)
        if last is None or last[1] == start[1]:
            # Quicker than can be seen.
            return (n - start[0]) / (now - start[1]) / 1e6
        return (last[0] - start[0]) / (last[1] - start[1]) / 1e6

    def wait_until_warm(self):
        """Waits until the datapath needs no more upcalls."""
        deadline = time.monotonic() + 180
        before = self.sw.misses()
        while time.monotonic() < deadline:
            time.sleep(1)
            after = self.sw.misses()
            if after - before < 10:
                return
            before = after
        step("  the datapath still makes upcalls after three minutes")

    def set_planb(self, on):
        self.sw.vsctl("set", "Open_vSwitch", ".",
                      "other_config:planb-enable=%s"
                      % ("true" if on else "false"), "--",
                      "set", "Bridge", BRIDGE,
                      "other_config:planb-tables=%d" % TABLE)
        if on:
            self.sw.appctl("planb/wait")

    def record(self, what, mpps, note=""):
        self.rates[what].append(mpps)
        say("    %-12s %7.3f Mpps%s" % (what, mpps, note))

    def measure_ceiling(self):
        self.set_planb(False)
        self.sw.ofctl("add-flow", BRIDGE, "table=0,priority=20,in_port=%d,"
                      "ipv6,actions=output:%d" % (RX, TX))
        self.start_traffic()
        self.rate(1)
        self.record("ceiling", self.rate(self.args.seconds))
        self.stop_traffic()
        self.sw.ofctl("--strict", "del-flows", BRIDGE,
                      "table=0,priority=20,in_port=%d,ipv6" % RX)

    def measure_planb(self):
        self.set_planb(True)
        self.start_traffic()
        self.rate(1)
        mpps = self.rate(self.args.seconds)
        self.show = self.sw.appctl("planb/show", BRIDGE)
        m = re.search(r"routes (\d+), classes (\d+)", self.show)
        if not m:
            raise DemoError("the table is not accelerated:\n" + self.show)
        if int(m.group(1)) != len(self.routes):
            raise DemoError("%s routes are accelerated, not %d:\n%s" % (
                m.group(1), len(self.routes), self.show))
        self.classes = int(m.group(2))
        first = last = self.sw.n_megaflows()
        # Those that the first packets made, before the table was bound to the
        # port, go when they have been idle for 10 seconds.
        deadline = time.monotonic() + 15
        while (last > self.classes + SPARE_MEGAFLOWS
               and time.monotonic() < deadline):
            time.sleep(.5)
            last = self.sw.n_megaflows()
        self.megaflows["planb"] = last
        self.record("planb", mpps, ", %d megaflows%s" % (
            last, "" if last == first else ", %d at first" % first))
        self.stop_traffic()

    def measure_stock(self):
        self.set_planb(False)
        # Without this, Open vSwitch would begin with a limit of 10,000
        # megaflows, and take a minute to raise it to what it needs.
        self.sw.appctl("upcall/set-flow-limit", "200000")
        self.record("stock cold", self.first_pass())
        self.wait_until_warm()
        mpps = self.rate(self.args.seconds)
        self.megaflows["stock"] = self.sw.n_megaflows()
        self.record("stock warm", mpps, ", %d megaflows, %.1f lookups each" % (
            self.megaflows["stock"], self.sw.n_masks()))
        self.stop_traffic()

    def measure(self):
        rounds = self.args.rounds
        for i in range(rounds):
            step("measuring, round %d of %d" % (i + 1, rounds))
            self.measure_ceiling()
            self.measure_planb()
            self.measure_stock()

    # The check.

    def route_counters(self):
        """Returns {(prefix, plen): (n_packets, n_bytes)}."""
        counters = {}
        dump = self.sw.ofctl("dump-flows", BRIDGE, "table=%d" % TABLE)
        for m in re.finditer(r"n_packets=(\d+), n_bytes=(\d+).*?"
                             r"ipv6_dst=([0-9a-f:.]+)(?:/(\d+))?", dump):
            prefix = int.from_bytes(
                socket.inet_pton(socket.AF_INET6, m.group(3)), "big")
            plen = int(m.group(4)) if m.group(4) else 128
            counters[prefix, plen] = int(m.group(1)), int(m.group(2))
        # What ::/0 matches is what "ipv6" alone matches.
        m = re.search(r"n_packets=(\d+), n_bytes=(\d+).*?,ipv6 actions", dump)
        if m:
            counters[0, 0] = int(m.group(1)), int(m.group(2))
        return counters

    def replay(self, n_primers):
        """Replays the packets once into out.pcap.  Returns true if none was
        lost at the start.

        A new port's first packets come before Open vSwitch knows the port
        everywhere, and are dropped, as on any switch.  So others go first,
        which a rule in table 0 counts from then on."""
        once = self.dir + "/once.pcap"
        primer = (ROUTER_MAC + HOST_MAC + PRIMER_TYPE).ljust(60, b"\0")
        write_pcap(once, itertools.chain(
            itertools.repeat(primer, n_primers), self.frames))
        self.sw.ofctl("add-flow", BRIDGE, PRIMER_RULE + ",actions=drop")
        self.sw.del_port("out")
        self.sw.add_port("out", TX, "net_pcap_planb_out,tx_pcap=%s/out.pcap"
                         % self.dir)
        self.sw.appctl("planb/wait")
        self.before = self.route_counters()

        self.sw.add_port("in", RX, "net_pcap_planb,rx_pcap=" + once)
        n = self.wait_until_quiet()
        self.after = self.route_counters()
        self.verify = self.sw.appctl("planb/verify", BRIDGE)
        primers = self.sw.ofctl("dump-flows", BRIDGE, PRIMER_RULE)
        self.stop_traffic()
        self.sw.del_port("out")
        self.sw.add_port("out", TX, NULL_DEVICE)
        return n == len(self.frames) or "n_packets=0," not in primers

    def wait_until_quiet(self):
        """Waits until all packets are out, or no more come out, and what
        Open vSwitch counted by megaflow has reached its rules."""
        n, changed = 0, time.monotonic()
        while n < len(self.frames) and time.monotonic() < changed + 10:
            time.sleep(.1)
            now = self.sw.tx_packets("out")
            if now != n:
                n, changed = now, time.monotonic()
        for _ in range(2):
            self.sw.appctl("revalidator/wait")
        return n

    def check(self):
        """Looks at what comes out, and returns how many things are wrong."""
        step("checking a full replay, packet by packet")
        self.set_planb(True)
        n_primers = 1 << 17
        while not self.replay(n_primers) and n_primers < 1 << 22:
            n_primers *= 2
        return self.judge()

    def judge(self):
        wrong = collections.Counter()
        sent = collections.Counter(
            forwarded_frame(frame, route.hop)
            for frame, route in zip(self.frames, self.expected))
        got = collections.Counter(read_pcap(self.dir + "/out.pcap"))
        wrong["packets missing or changed"] = (sent - got).total()
        wrong["packets that should not be"] = (got - sent).total()

        packets = collections.Counter(
            (route.prefix, route.plen) for route in self.expected)
        for route in self.routes:
            key = route.prefix, route.plen
            want = packets[key], packets[key] * FRAME_LEN
            have = tuple(a - b for a, b in zip(self.after.get(key, (-1, -1)),
                                               self.before.get(key, (0, 0))))
            wrong["routes with wrong counters"] += want != have
        m = re.search(r"(\d+) checked, (\d+) differ", self.verify)
        wrong["addresses that planb/verify found to differ"] = (
            int(m.group(2)) if m else 1)

        say("    %d packets in, %d out: each compared with the MAC of its"
            % (len(self.frames), got.total()))
        say("    route and hop limit 63; n_packets and n_bytes of %d routes"
            % len(self.routes))
        say("    planb/verify: " + (m.group(0) if m else self.verify.strip()))
        for what, number in wrong.items():
            say("    %s: %d" % (what, number))
        return wrong.total()

    # The report.

    def report(self):
        rates = {what: statistics.median(values)
                 for what, values in self.rates.items()}
        say()
        say(self.show.rstrip())
        say()
        say("%d routes, %d packets inside them, %d-byte frames, one core, "
            "exact match" % (len(self.routes), len(self.frames), FRAME_LEN))
        say("cache off, median of %d rounds:" % self.args.rounds)
        say()
        rows = [
            Row("one plain rule", rates["ceiling"], "1 megaflow"),
            Row("PlanB", rates["planb"],
                "%d megaflows" % self.megaflows["planb"]),
            Row("stock, warm", rates["stock warm"],
                "%d megaflows" % self.megaflows["stock"]),
            Row("stock, cold", rates["stock cold"], "an upcall per packet")]
        top = max(row.mpps for row in rows)
        for row in rows:
            say("  %-15s %-40s %7.3f Mpps  %5.1f %%  %s" % (
                row.title, "#" * max(1, round(40 * row.mpps / top)), row.mpps,
                100 * row.mpps / rates["ceiling"], row.note))
        if self.args.plot:
            write_svg(self.args.plot, "%d IPv6 routes, one core, 64-byte "
                      "packets" % len(self.routes), rows)
        say()
        return rates

    def run(self):
        self.read_routes()
        self.make_packets()
        self.load()
        self.measure()
        wrong = self.check()
        rates = self.report()
        values = ("routes=%d classes=%d megaflows=%d mpps=%.2f "
                  "ceiling_ratio=%.2f stock_warm_ratio=%.2f "
                  "stock_cold_ratio=%.1f wrong=%d" % (
                      len(self.routes), self.classes,
                      self.megaflows["planb"], rates["planb"],
                      rates["planb"] / rates["ceiling"],
                      rates["planb"] / rates["stock warm"],
                      rates["planb"] / rates["stock cold"], wrong))
        if wrong:
            raise DemoError(values)
        if self.megaflows["planb"] > self.classes + SPARE_MEGAFLOWS:
            raise DemoError("too many megaflows: " + values)
        return "planb-demo: ok: " + values

    def keep(self):
        self.start_traffic()
        say("Left running, with traffic on.  To talk to it:")
        say()
        say("    export OVS_RUNDIR=%s" % self.dir)
        say("    PATH=%s/utilities:$PATH" % self.args.ovs)
        say("    ovs-appctl -t %s planb/show" % self.sw.ctl)
        say("    ovs-appctl -t %s dpctl/dump-flows %s" % (
            self.sw.ctl, DATAPATH))
        say("    ovs-ofctl -O OpenFlow14 dump-flows %s table=%d | head" % (
            BRIDGE, TABLE))
        say("    ovs-vsctl --db=unix:%s/db.sock show" % self.dir)
        say()
        say("To end it:")
        say()
        say("    kill %s" % " ".join(str(c.pid) for c in self.sw.children))
        if self.sw.hugepages.old is not None:
            say("    echo %d > %s/nr_hugepages" % (self.sw.hugepages.old,
                                                   Hugepages.PATH))
        say("    rm -r %s" % self.dir)
        say()


def interrupted(signum, frame):
    raise DemoError("interrupted")


def main():
    parser = argparse.ArgumentParser(prog="planb-demo")
    parser.add_argument("--ovs", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--routes")
    parser.add_argument("--flows", type=int, default=65536)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()

    workdir = None
    demo = None
    kept = False
    for sig in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(sig, interrupted)
    try:
        if not 1 <= args.flows <= MAX_FLOWS:
            raise DemoError("--flows=%d: must be 1 to %d" % (args.flows,
                                                             MAX_FLOWS))
        if args.seconds <= 0 or args.rounds < 1:
            raise DemoError("--seconds and --rounds must be positive")
        workdir = tempfile.mkdtemp(prefix="planb-demo.")
        demo = Demo(args, workdir)
        last = demo.run()
        if args.keep:
            demo.keep()
            kept = True
        rc = 0
    except (DemoError, OSError) as e:
        last = "planb-demo: failed: %s" % e
        rc = 1
    finally:
        if not kept:
            if demo:
                demo.sw.stop()
            if workdir:
                shutil.rmtree(workdir, ignore_errors=True)
    say(last)
    return rc


if __name__ == "__main__":
    sys.exit(main())

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

"""Measures Open vSwitch with DPDK as an IPv6 router: with one plain rule, with
PlanB, and on the stock path.

This is the second half of planb-bench-ovs, which sets up the machine and
builds before it starts this.  It uses nothing but Python's standard library
and, to draw, gnuplot.
"""

import argparse
import collections
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import planb_openflow as of
from planb_router import TABLE, Router
from planb_switch import BRIDGE, RX, TX
from planb_traffic import (HOST_MAC, N_HOPS, ROUTER_MAC, Failure, Route,
                           location_routes, make_frame, mac_string,
                           network_mask, nexthop_mac, parse_prefix,
                           read_routes, write_pcap)

SETUPS = "ceiling", "planb", "stock"
DEFAULT_TABLE = 20              # The OpenFlow table with nothing but ::/0.
CSV_HEADER = ("setup,regime,routes,median_mpps,min_mpps,max_mpps,"
              "cycles_per_packet,upcalls,megaflows,masks,gap_ms")

# One packet of PROBE_SHARE goes to an address inside PROBE, a route of its own
# that moves from one of two ports to the other every PROBE_INTERVAL seconds.
# These ports write to files, where each packet has a time.
PROBE = parse_prefix("2001:db8:feed::/48")
PROBE_PORTS = 3, 4
PROBE_SHARE = 512
PROBE_INTERVAL = .1


def say(text=""):
    print(text, flush=True)


def step(text):
    say("planb-bench-ovs: " + text)


class Regime(collections.namedtuple("Regime", "name pcap rate batch what")):
    """A kind of load: the file with the packets, and how many routes change
    each second and at once (all those of one next hop each second if 'rate'
    is less than 0)."""

    def __new__(cls, name, what, pcap="in.pcap", rate=0, batch=0):
        return super().__new__(cls, name, pcap, rate, batch, what)


REGIMES = [
    Regime("cold", "the first 3 seconds"),
    Regime("warm", "when there are no more upcalls"),
    Regime("churn1000", "1,000 routes change each second, 100 at once",
           rate=1000, batch=100),
    Regime("churn10000", "10,000 routes change each second, 100 at once",
           rate=10000, batch=100),
    Regime("reset", "all routes of a next hop move to another each second",
           rate=-1),
    Regime("scan", "random destinations in 2000::/3", pcap="scan.pcap"),
    Regime("default", "a table with nothing but a default route"),
    Regime("mix", "every other packet is IPv4", pcap="mix.pcap"),
]


def synthetic_routes(routes, n):
    """Returns 'n' made-up routes with the lengths of 'routes', near these."""
    rng = random.Random(2)
    made = {}
    while len(made) < n:
        model = rng.choice(routes)
        # Below the same /20, as what registries give out is.
        prefix = (model.prefix & network_mask(min(model.plen, 20))
                  | rng.getrandbits(128) & ~network_mask(20))
        prefix &= network_mask(model.plen)
        made[prefix, model.plen] = Route(prefix, model.plen,
                                         rng.randrange(N_HOPS))
    return [made[key] for key in sorted(made)]


def make_ipv4_frame(index):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, index & 0xffff, 0, 64,
                         17, 0, bytes([192, 0, 2, 1]),
                         bytes([198, 51, 100, index & 0xff]))
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xffff) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~total & 0xffff) + header[12:]
    udp = struct.pack("!HHHH", 1024, 9, 26, 0) + bytes(18)
    return ROUTER_MAC + HOST_MAC + b"\x08\x00" + header + udp


def pcap_times(path):
    """Returns the times of the packets in 'path', in seconds."""
    with open(path, "rb") as f:
        data = f.read()
    nanoseconds = data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")
    order = "<" if data[:1] in (b"\x4d", b"\xd4") else ">"
    times = []
    offset = 24
    while offset + 16 <= len(data):
        sec, fraction, caplen = struct.unpack_from(order + "III", data, offset)
        times.append(sec + fraction / (1e9 if nanoseconds else 1e6))
        offset += 16 + caplen
    return times


class Churn:
    """Changes routes at a rate."""

    def __init__(self, router, regime):
        self.router = router
        self.regime = regime
        self.conn = of.Connection("%s/%s.mgmt" % (router.dir, BRIDGE))
        self.rng = random.Random(3)
        self.withdrawn = []
        self.flips = []         # (sent, barrier's reply, port since then)
        self.end = None         # Of all changes.
        self.n_changes = 0
        self.probe_port = 0
        self.moved = False

    def change(self):
        """Returns a message for a random change: most are of next hops."""
        kind = self.rng.random()
        self.n_changes += 1
        if kind < .15 and self.withdrawn:
            return self.conn.route_mod(of.ADD, TABLE, self.withdrawn.pop(),
                                       self.rng.randrange(N_HOPS), TX)
        route = self.rng.choice(self.router.routes)
        if kind < .3:
            self.withdrawn.append(route)
            return self.conn.route_mod(of.DELETE_STRICT, TABLE, route, 0, TX)
        return self.conn.route_mod(of.MODIFY_STRICT, TABLE, route,
                                   self.rng.randrange(N_HOPS), TX)

    def reset(self):
        """Returns messages that move all routes of next hop 0."""
        self.moved = not self.moved
        group = [r for r in self.router.routes if r.hop == 0]
        self.n_changes += len(group)
        return b"".join(
            self.conn.route_mod(of.MODIFY_STRICT, TABLE, route,
                                1 if self.moved else 0, TX)
            for route in group)

    def flip(self, before=b""):
        """Sends 'before' and moves the probe's route to its other port."""
        self.probe_port = 1 - self.probe_port
        port = PROBE_PORTS[self.probe_port]
        sent = time.time()
        self.conn.send(before + self.conn.route_mod(
            of.MODIFY_STRICT, TABLE, self.router.probe, 0, port))
        self.flips.append((sent, self.conn.barrier(), self.probe_port))

    def run(self, seconds):
        """Changes routes for 'seconds'."""
        start = time.monotonic()
        next_batch = next_flip = start
        while True:
            now = time.monotonic()
            if now >= start + seconds:
                break
            if now >= next_flip:
                if self.regime.rate < 0:
                    self.flip(self.reset())
                    next_flip += 1
                    continue
                self.flip()
                next_flip += PROBE_INTERVAL
            elif self.regime.rate > 0 and now >= next_batch:
                self.conn.send(b"".join(self.change()
                                        for _ in range(self.regime.batch)))
                next_batch += self.regime.batch / self.regime.rate
            else:
                wake = min(next_flip, start + seconds,
                           next_batch if self.regime.rate > 0 else next_flip)
                self.conn.receive(max(0, wake - time.monotonic()))
        self.end = self.conn.barrier()
        return self.n_changes / (time.monotonic() - start)

    def finish(self):
        """Puts withdrawn routes and the probe's route back."""
        if self.moved:
            self.conn.send(self.reset())
        for route in self.withdrawn:
            self.conn.send(self.conn.route_mod(of.ADD, TABLE, route,
                                               route.hop, TX))
        self.conn.send(self.conn.route_mod(of.MODIFY_STRICT, TABLE,
                                           self.router.probe, 0, TX))
        self.conn.barrier()
        self.conn.close()


Result = collections.namedtuple(
    "Result", "mpps cycles upcalls megaflows masks gap follow cpu changes")


class Bench(Router):
    def __init__(self, args, workdir):
        super().__init__(args.ovs, workdir, step)
        self.args = args
        self.probe = Route(PROBE[0], PROBE[1], 0)
        self.results = collections.defaultdict(list)

    # Preparation.

    def read_routes(self):
        path = self.args.routes or location_routes(self.args.cache, step)
        self.routes = read_routes(path)
        if self.args.synthetic:
            self.routes = synthetic_routes(self.routes, self.args.synthetic)
        step("%d routes%s from %s" % (
            len(self.routes), " made like those" if self.args.synthetic
            else "", path))

    def make_packets(self):
        step("making packets")
        rng = random.Random(1)
        frames, scan, mix = [], [], []
        for index in range(self.args.flows):
            route = (self.probe if index % PROBE_SHARE == 0
                     else rng.choice(self.routes))
            addr = route.prefix | (rng.getrandbits(128)
                                   & ~network_mask(route.plen))
            frames.append(make_frame(index, addr.to_bytes(16, "big")))
            addr = 1 << 125 | rng.getrandbits(125)
            scan.append(make_frame(index, addr.to_bytes(16, "big")))
            mix.append(frames[-1] if index % 2 else make_ipv4_frame(index))
        write_pcap(self.dir + "/in.pcap", frames)
        write_pcap(self.dir + "/scan.pcap", scan)
        write_pcap(self.dir + "/mix.pcap", mix)

    def load(self):
        super().load()
        flow = "table=%d,priority=%d,ipv6%s,actions=mod_dl_dst:%s,dec_ttl," \
               "output:%d"
        mac = mac_string(nexthop_mac(0))
        for text in (
                flow % (TABLE, self.probe.priority,
                        ",ipv6_dst=" + str(self.probe), mac, TX),
                flow % (DEFAULT_TABLE, 1, "", mac, TX),
                "table=0,priority=10,in_port=%d,ip,actions=output:%d"
                % (RX, TX)):
            self.sw.ofctl("add-flow", BRIDGE, text)
        self.sw.vsctl("set", "Bridge", BRIDGE,
                      "other_config:planb-tables=%d" % TABLE)

    # Observation.

    def pmd_stat(self, name):
        m = re.search(r"^  %s: ([0-9.]+)" % re.escape(name),
                      self.sw.appctl("dpif-netdev/pmd-stats-show"), re.M)
        return float(m.group(1)) if m else 0.

    def other_cpu(self):
        """CPU seconds that the threads of Open vSwitch that are not PMDs have
        used."""
        pid = self.sw.children[-1].pid
        ticks = 0
        for tid in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/stat" % (pid, tid)) as f:
                    name, _, rest = f.read().rpartition(") ")
            except OSError:
                continue        # It has ended.
            if "(pmd" not in name:
                fields = rest.split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def probe_gap(self, flips, end):
        """Returns the longest time between two packets to the probe's route,
        and for how long packets went to the old port after each reply, in
        msec."""
        times = [pcap_times("%s/probe%d.pcap" % (self.dir, i))
                 for i in range(2)]
        both = sorted(times[0] + times[1])
        if not both:
            return 0., []
        both = [t for t in both if flips[0][1] <= t < end]
        gap = max((b - a for a, b in zip(both, both[1:])), default=0.)
        follow = []
        ends = [sent for sent, _, _ in flips[2:]] + [end]
        for (_, reply, port), end in zip(flips[1:], ends):
            late = [t for t in times[1 - port] if reply < t < end]
            follow.append(1000 * (max(late) - reply) if late else 0.)
        return 1000 * gap, follow

    # Measuring.

    def rules(self, setup, regime):
        """The flows that 'setup' and 'regime' need besides those that are
        there always."""
        match = "table=0,priority=%d,in_port=%d,ipv6"
        if setup == "ceiling":
            return [(match % (20, RX), "output:%d" % TX)]
        if regime.name == "default":
            return [(match % (15, RX), "goto_table:%d" % DEFAULT_TABLE)]
        return []

    def set_up(self, setup, regime):
        table = DEFAULT_TABLE if regime.name == "default" else TABLE
        self.sw.vsctl("set", "Bridge", BRIDGE,
                      "other_config:planb-tables=%d" % table, "--",
                      "set", "Open_vSwitch", ".",
                      "other_config:planb-enable=%s"
                      % ("true" if setup == "planb" else "false"))
        self.sw.appctl("planb/wait")
        # Without this, Open vSwitch would begin with a limit of 10,000
        # megaflows, and take a minute to raise it to what it needs.
        self.sw.appctl("upcall/set-flow-limit", "200000")
        for match, actions in self.rules(setup, regime):
            self.sw.ofctl("add-flow", BRIDGE, "%s,actions=%s"
                          % (match, actions))
        if regime.rate:
            for i, port in enumerate(PROBE_PORTS):
                self.sw.add_port("probe%d" % i, port, "net_pcap_probe%d,"
                                 "tx_pcap=%s/probe%d.pcap" % (i, self.dir, i))

    def tear_down(self, setup, regime):
        self.stop_traffic()
        for match, _ in self.rules(setup, regime):
            self.sw.ofctl("--strict", "del-flows", BRIDGE, match)

    def n_received(self):
        """Packets that the PMD thread has taken, those without a route
        too."""
        m = re.search(r"^pmd thread .*?  packets received: (\d+)",
                      self.sw.appctl("dpif-netdev/pmd-stats-show"),
                      re.M | re.S)
        return int(m.group(1)) if m else 0

    def cold_rate(self, regime):
        """Returns the rate in the first three seconds with packets."""
        before = self.sw.tx_packets("out")
        self.start_traffic(regime.pcap)
        deadline = time.monotonic() + 30
        while self.sw.tx_packets("out") == before:
            if time.monotonic() > deadline:
                raise Failure("nothing is forwarded")
            time.sleep(.002)
        return self.rate(3)

    def measure(self, setup, regime):
        churn = None
        gap, follow, changes = 0., [], 0.
        self.set_up(setup, regime)
        if regime.name == "cold":
            upcalls, cpu, start = self.sw.misses(), self.other_cpu(), None
            mpps = self.cold_rate(regime)
            cpu = (self.other_cpu() - cpu) / 3
        else:
            self.start_traffic(regime.pcap)
            if setup == "stock" and regime.name != "scan":
                self.wait_until_warm()
            else:
                time.sleep(1.5)
            self.sw.appctl("dpif-netdev/pmd-stats-clear")
            upcalls = 0
            n, cpu, start = (self.n_received(), self.other_cpu(),
                             time.monotonic())
            if regime.rate:
                churn = Churn(self, regime)
                changes = churn.run(self.args.seconds)
            else:
                time.sleep(self.args.seconds)
            seconds = time.monotonic() - start
            mpps = (self.n_received() - n) / seconds / 1e6
            cpu = (self.other_cpu() - cpu) / seconds
        result = [mpps, self.pmd_stat("avg cycles per packet"),
                  self.sw.misses() - upcalls, self.sw.n_megaflows(),
                  self.sw.n_masks()]
        if churn:
            churn.finish()
            for i in range(2):
                self.sw.del_port("probe%d" % i)
            gap, follow = self.probe_gap(churn.flips, churn.end)
        self.tear_down(setup, regime)
        self.results[setup, regime].append(
            Result(*result, gap, follow, cpu, changes))
        r = self.results[setup, regime][-1]
        text = ("  %-10s %-8s %7.3f Mpps %6.0f cycles %8d upcalls %7d "
                "megaflows %4.0f %% CPU" % (regime.name, setup, r.mpps,
                                            r.cycles, r.upcalls, r.megaflows,
                                            100 * r.cpu))
        if churn and setup != "ceiling":
            text += ", gap %.1f ms, %.0f changes/s" % (gap, changes)
        say(text)

    # The report.

    def report(self):
        say()
        say("%d routes, %d packets inside them, one core, median of %d rounds"
            % (len(self.routes), self.args.flows, self.args.rounds))
        say("(and the least and the most); %% is of the ceiling in the same "
            "round:" .replace("%%", "%"))
        say()
        say("%-11s%-9s%8s %17s %6s %7s %8s %8s %6s %6s %8s %6s" % (
            "regime", "setup", "Mpps", "(min - max)", "%", "cycles", "upcalls",
            "megaflow", "masks", "gap", "follow", "CPU"))
        lines = []
        for regime in self.args.regimes:
            for setup in SETUPS:
                rows = self.results[setup, regime]
                ceiling = self.results["ceiling", regime]
                mpps = [r.mpps for r in rows]
                follow = sorted(f for r in rows for f in r.follow)
                p99 = follow[len(follow) * 99 // 100] if follow else 0.

                def median(name):
                    return statistics.median(getattr(r, name) for r in rows)

                gap = max(r.gap for r in rows)
                share = statistics.median(
                    100 * r.mpps / c.mpps for r, c in zip(rows, ceiling))
                say("%-11s%-9s%8.3f (%7.3f -%7.3f) %6.1f %7.0f %8d %8d %6.1f "
                    "%6.1f %8.2f %5.0f%%" % (
                        regime.name, setup, statistics.median(mpps), min(mpps),
                        max(mpps), share, median("cycles"),
                        median("upcalls"), median("megaflows"),
                        median("masks"), gap, p99, 100 * median("cpu")))
                lines.append("%s,%s,%d,%.4f,%.4f,%.4f,%.1f,%d,%d,%.1f,%.3f" % (
                    setup, regime.name, len(self.routes),
                    statistics.median(mpps), min(mpps), max(mpps),
                    median("cycles"), median("upcalls"), median("megaflows"),
                    median("masks"), gap))
        say()
        say("gap: the longest time in msec without a packet to a route that "
            "moves; follow:")
        say("99th percentile of the time that its packets go on to the old "
            "port after the")
        say("barrier reply; CPU: of the threads that are not PMDs.")
        if self.args.csv:
            with open(self.args.csv, "w") as f:
                f.write("\n".join([CSV_HEADER] + lines) + "\n")
        if self.args.plot:
            self.plot(self.args.plot)

    def plot(self, path):
        data = os.path.join(self.dir, "plot.dat")
        with open(data, "w") as f:
            for regime in self.args.regimes:
                f.write(" ".join([regime.name] + [
                    "%.4f" % statistics.median(
                        r.mpps for r in self.results[setup, regime])
                    for setup in SETUPS]) + "\n")
        script = "\n".join([
            "set terminal pngcairo size 1000,500",
            "set output '%s'" % path,
            "set style data histograms",
            "set style fill solid 0.8 border -1",
            "set ylabel 'Mpps'", "set yrange [0:*]", "set grid ytics",
            "set key top right",
            "set title '%d IPv6 routes, one core, 64-byte packets'"
            % len(self.routes),
            "plot '%s' using 2:xtic(1) title 'one plain rule', "
            "'' using 3 title 'PlanB', '' using 4 title 'stock'" % data])
        done = subprocess.run(["gnuplot"], input=script, text=True,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failure("gnuplot: %s" % done.stderr.strip())

    def run(self):
        self.read_routes()
        self.make_packets()
        self.load()
        for i in range(self.args.rounds):
            step("round %d of %d" % (i + 1, self.args.rounds))
            for regime in self.args.regimes:
                for setup in SETUPS:
                    self.measure(setup, regime)
        self.report()


def parse_regimes(names, churn):
    regimes = {regime.name: regime for regime in REGIMES}
    chosen = []
    for name in names.split(",") if names else regimes:
        if name not in regimes:
            raise Failure("%s: no such regime; there are %s"
                          % (name, ", ".join(regimes)))
        chosen.append(regimes[name])
    for text in churn:
        m = re.fullmatch(r"([1-9]\d*),([1-9]\d*)", text)
        if not m:
            raise Failure("--churn=%s: not RATE,BATCH" % text)
        rate, batch = int(m.group(1)), int(m.group(2))
        chosen.append(Regime("churn%d" % rate, "", rate=rate, batch=batch))
    return chosen


def interrupted(signum, frame):
    raise Failure("interrupted")


def main():
    parser = argparse.ArgumentParser(prog="planb-bench-ovs")
    parser.add_argument("--ovs", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--routes")
    parser.add_argument("--synthetic", type=int, default=0)
    parser.add_argument("--flows", type=int, default=65536)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--regimes")
    parser.add_argument("--churn", action="append", default=[])
    parser.add_argument("--csv")
    parser.add_argument("--plot")
    args = parser.parse_args()

    workdir = None
    bench = None
    for sig in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(sig, interrupted)
    try:
        args.regimes = parse_regimes(args.regimes, args.churn)
        if args.seconds <= 0 or args.rounds < 1 or args.synthetic < 0:
            raise Failure("--seconds, --rounds and --synthetic must be "
                          "positive")
        if not PROBE_SHARE <= args.flows <= 200000:
            raise Failure("--flows=%d: must be %d to 200000"
                          % (args.flows, PROBE_SHARE))
        workdir = tempfile.mkdtemp(prefix="planb-bench-ovs.")
        bench = Bench(args, workdir)
        bench.run()
        last, rc = "planb-bench-ovs: ok", 0
    except (Failure, OSError) as e:
        last, rc = "planb-bench-ovs: failed: %s" % e, 1
    finally:
        if bench:
            bench.sw.stop()
        if workdir:
            shutil.rmtree(workdir, ignore_errors=True)
    say(last)
    return rc


if __name__ == "__main__":
    sys.exit(main())

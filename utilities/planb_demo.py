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
import itertools
import random
import re
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time

from planb_router import TABLE, Router
from planb_switch import (BRIDGE, DATAPATH, HUGEPAGES_PATH, NULL_DEVICE, RX,
                          TX)
from planb_traffic import (FRAME_LEN, HOST_MAC, ROUTER_MAC, Failure, Oracle,
                           forwarded_frame, location_routes, make_frame,
                           network_mask, read_pcap, read_routes, write_pcap)

PRIMER_TYPE = b"\x88\xb5"       # For local experiments.
PRIMER_RULE = "table=0,in_port=%d,dl_type=0x88b5" % RX
MAX_FLOWS = 200000

# How many megaflows there may be besides one for each route class.
SPARE_MEGAFLOWS = 8


def say(text=""):
    print(text, flush=True)


def step(text):
    say("planb-demo: " + text)


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


class Demo(Router):
    def __init__(self, args, workdir):
        super().__init__(args.ovs, workdir, step)
        self.args = args
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
        path = self.args.routes or location_routes(self.args.cache, step)
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
                raise Failure("nothing is forwarded")
            time.sleep(.002)
        if last is None or last[1] == start[1]:
            # Quicker than can be seen.
            return (n - start[0]) / (now - start[1]) / 1e6
        return (last[0] - start[0]) / (last[1] - start[1]) / 1e6

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
            raise Failure("the table is not accelerated:\n" + self.show)
        if int(m.group(1)) != len(self.routes):
            raise Failure("%s routes are accelerated, not %d:\n%s" % (
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
            raise Failure(values)
        if self.megaflows["planb"] > self.classes + SPARE_MEGAFLOWS:
            raise Failure("too many megaflows: " + values)
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
                                                   HUGEPAGES_PATH))
        say("    rm -r %s" % self.dir)
        say()


def interrupted(signum, frame):
    raise Failure("interrupted")


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
            raise Failure("--flows=%d: must be 1 to %d" % (args.flows,
                                                             MAX_FLOWS))
        if args.seconds <= 0 or args.rounds < 1:
            raise Failure("--seconds and --rounds must be positive")
        workdir = tempfile.mkdtemp(prefix="planb-demo.")
        demo = Demo(args, workdir)
        last = demo.run()
        if args.keep:
            demo.keep()
            kept = True
        rc = 0
    except (Failure, OSError) as e:
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

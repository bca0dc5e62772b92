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

"""Open vSwitch as an IPv6 router, for planb-demo and planb-bench-ovs."""

import time

from planb_switch import BRIDGE, NULL_DEVICE, RX, TX, Switch
from planb_traffic import Failure, mac_string, nexthop_mac

TABLE = 10                      # The OpenFlow table with the routes.


class Router:
    """A private Open vSwitch with the "Route"s in 'routes' in TABLE and two
    ports: "in", while there is traffic, and "out", where it goes.  'step' is
    called with each thing that takes a while."""

    def __init__(self, ovs, workdir, step):
        self.dir = workdir
        self.step = step
        self.sw = Switch(ovs, workdir)
        self.routes = []

    def load(self):
        self.step("starting ovsdb-server and ovs-vswitchd in %s" % self.dir)
        self.sw.start()
        self.step("forwarding on CPU %d, memory in %s" % (
            self.sw.pmd_core, "huge pages" if self.sw.huge
            else "ordinary pages (huge pages are not to be had)"))
        self.sw.add_port("out", TX, NULL_DEVICE)

        self.step("loading %d flows" % len(self.routes))
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
        self.step("  took %.1f s" % (time.monotonic() - start))
        # The best that the stock path can do: prefix tries for IPv6
        # destinations are not the default in Open vSwitch 3.1.
        self.sw.vsctl("--", "--id=@ft", "create", "Flow_Table",
                      "prefixes=ipv6_dst", "--", "set", "Bridge", BRIDGE,
                      "flow_tables:%d=@ft" % TABLE)

    # Traffic.

    def start_traffic(self, name="in.pcap"):
        """Replays the packets in the file 'name' again and again."""
        self.sw.add_port("in", RX, "net_pcap_planb,rx_pcap=%s/%s,"
                         "infinite_rx=1" % (self.dir, name))

    def stop_traffic(self):
        """Stops it, and waits until its megaflows are gone."""
        self.sw.del_port("in")
        deadline = time.monotonic() + 120
        while self.sw.n_megaflows():
            if time.monotonic() > deadline:
                raise Failure("megaflows stay though their port is gone")
            time.sleep(.2)

    def rate(self, seconds):
        """Returns million packets per second that leave the switch."""
        n0, t0 = self.sw.tx_packets("out"), time.monotonic()
        time.sleep(seconds)
        n1, t1 = self.sw.tx_packets("out"), time.monotonic()
        if n1 == n0:
            raise Failure("nothing is forwarded")
        return (n1 - n0) / (t1 - t0) / 1e6

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
        self.step("  the datapath still makes upcalls after three minutes")

    def set_planb(self, on):
        self.sw.vsctl("set", "Open_vSwitch", ".",
                      "other_config:planb-enable=%s"
                      % ("true" if on else "false"), "--",
                      "set", "Bridge", BRIDGE,
                      "other_config:planb-tables=%d" % TABLE)
        if on:
            self.sw.appctl("planb/wait")

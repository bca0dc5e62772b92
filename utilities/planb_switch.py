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

"""A private Open vSwitch with DPDK, for planb-demo and planb-bench-ovs.  Uses
nothing but Python's standard library."""

import contextlib
import glob
import json
import os
import re
import socket
import subprocess
import time

from planb_traffic import Failure

BRIDGE = "br-planb"
DATAPATH = "netdev@ovs-netdev"
RX, TX = 1, 2                   # OpenFlow port numbers.
NULL_DEVICE = "net_null_planb,no-rx=1"

# Memory for DPDK, in MB.  Open vSwitch gives its ports 262,144 buffers when it
# can, and the port that replays keeps its packets in them.
DPDK_MB = 1024
HUGEPAGE_MB = 2
HUGEPAGES_PATH = ("/sys/kernel/mm/hugepages/hugepages-%dkB"
                  % (HUGEPAGE_MB * 1024))


class Hugepages:
    """Sees to huge pages where the kernel lets us, and gives them back."""

    def __init__(self):
        self.old = None

    def _read(self, name):
        with open(os.path.join(HUGEPAGES_PATH, name)) as f:
            return int(f.read())

    def _write(self, n):
        with open(os.path.join(HUGEPAGES_PATH, "nr_hugepages"), "w") as f:
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
        raise Failure("%s: not found in %s" % (name, self.ovs))

    def run(self, name, *args):
        try:
            done = subprocess.run([self.command(name)] + list(args),
                                  env=self.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  timeout=300)
        except subprocess.TimeoutExpired:
            raise Failure("%s %s: no answer" % (name, args[0])) from None
        if done.returncode:
            raise Failure("%s %s: %s" % (
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
                raise Failure("ovs-vswitchd: %s: %s" % (method, e)) from None
        if reply["error"]:
            raise Failure("%s: %s" % (method, reply["error"].strip()))
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
        raise Failure("%s does not start; the end of its log:\n%s" % (
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
            raise Failure("needs two CPUs, one of them for forwarding alone")
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

        extra = "--no-pci --file-prefix=planb-%d" % os.getpid()
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
            raise Failure("DPDK does not start; the end of the log:\n"
                            + self.log_tail())

    def add_port(self, name, ofport, devargs):
        self.vsctl("add-port", BRIDGE, name, "--", "set", "Interface", name,
                   "type=dpdk", "ofport_request=%d" % ofport,
                   "options:dpdk-devargs=\"%s\"" % devargs)
        error = self.vsctl("get", "Interface", name, "error").strip()
        if error not in ("[]", '""'):
            raise Failure("port %s: %s" % (name, error))
        got = self.vsctl("get", "Interface", name, "ofport").strip()
        if got != str(ofport):
            raise Failure("port %s: has number %s, not %d"
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

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

"""Routes, and packets to addresses inside them, for planb-demo and
planb-bench-ovs.  Uses nothing but Python's standard library."""

import collections
import os
import socket
import struct
import subprocess
import zlib

N_HOPS = 16                     # Next hops.
SRC_ADDR = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
ROUTER_MAC = bytes.fromhex("020000000001")
HOST_MAC = bytes.fromhex("020000000002")
FRAME_LEN = 64                  # With two bytes that number the packets.


class Failure(Exception):
    """What a command fails with, for its last line."""


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
        raise Failure("location dump: failed")
    os.rename(path + ".tmp", path)


def location_routes(cache, step):
    """Returns the name of a file in the directory 'cache' with the prefixes of
    the location database, after making it if it is not there or old."""
    path = os.path.join(cache, "routes.txt")
    database = "/var/lib/location/database.db"
    if not os.path.exists(path) or (
            os.path.exists(database)
            and os.path.getmtime(database) > os.path.getmtime(path)):
        step("taking the IPv6 routes from the location database")
        os.makedirs(cache, exist_ok=True)
        dump_routes(path)
    return path


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
                raise Failure("%s:%d: %s" % (path, number, e)) from None
            routes[key] = Route(key[0], key[1], hop)
    if not routes:
        raise Failure("%s: no routes" % path)
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

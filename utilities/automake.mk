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

# These commands do their own set-up and build, so they are run from the source
# tree and not installed.
EXTRA_DIST += \
	utilities/planb-bench-ovs \
	utilities/planb-bench-ovs.8 \
	utilities/planb-check \
	utilities/planb-check.8 \
	utilities/planb-common \
	utilities/planb-demo \
	utilities/planb-demo.8 \
	utilities/planb_bench_ovs.py \
	utilities/planb_demo.py \
	utilities/planb_openflow.py \
	utilities/planb_router.py \
	utilities/planb_switch.py \
	utilities/planb_traffic.py \
	utilities/debian-packages

bin_PROGRAMS += utilities/planb-fib
utilities_planb_fib_SOURCES = \
	utilities/fib-parse.c \
	utilities/fib-parse.h \
	utilities/planb-fib.c \
	utilities/prefix-file.c \
	utilities/prefix-file.h \
	utilities/util.c \
	utilities/util.h
dist_man_MANS += utilities/planb-fib.1

bin_PROGRAMS += utilities/planb-bench
utilities_planb_bench_SOURCES = \
	utilities/bench-report.c \
	utilities/bench-table.c \
	utilities/bench.h \
	utilities/planb-bench.c \
	utilities/prefix-file.c \
	utilities/prefix-file.h \
	utilities/util.c \
	utilities/util.h
utilities_planb_bench_CPPFLAGS = $(AM_CPPFLAGS)
utilities_planb_bench_LDADD = lib/libplanb.la
if HAVE_DPDK
utilities_planb_bench_SOURCES += utilities/bench-dpdk.c
utilities_planb_bench_CPPFLAGS += -DHAVE_DPDK $(DPDK_CFLAGS)
utilities_planb_bench_LDADD += $(DPDK_LIBS)
endif
dist_man_MANS += utilities/planb-bench.1

# Built with the tests, installed as source.
check_PROGRAMS += utilities/planb-example
utilities_planb_example_SOURCES = utilities/planb-example.c
utilities_planb_example_LDADD = lib/libplanb.la
exampledir = $(docdir)/examples
dist_example_DATA = utilities/planb-example.c

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

# The new files in Open vSwitch, included by its Makefile.am after the lists
# that are added to here.

# libplanb, a part of libopenvswitch here.
lib_libopenvswitch_la_SOURCES += \
	lib/planb-autovalidator.c \
	lib/planb-build.c \
	lib/planb-compile.c \
	lib/planb-lookup-avx2.c \
	lib/planb-lookup-avx512.c \
	lib/planb-lookup-neon.c \
	lib/planb-lookup-scalar.c \
	lib/planb-lookup-sse42.c \
	lib/planb-lookup.h \
	lib/planb-private.h \
	lib/planb-table.c \
	lib/planb.c \
	lib/planb.h

lib_libopenvswitch_la_SOURCES += \
	lib/dpif-netdev-planb-flow.c \
	lib/dpif-netdev-planb-flow.h \
	lib/dpif-netdev-planb.c \
	lib/dpif-netdev-planb.h \
	lib/dpif-planb.c \
	lib/dpif-planb.h

ofproto_libofproto_la_SOURCES += \
	ofproto/ofproto-dpif-planb-class.c \
	ofproto/ofproto-dpif-planb-compile.c \
	ofproto/ofproto-dpif-planb-count.c \
	ofproto/ofproto-dpif-planb-provider.h \
	ofproto/ofproto-dpif-planb-show.c \
	ofproto/ofproto-dpif-planb-xlate.c \
	ofproto/ofproto-dpif-planb.c \
	ofproto/ofproto-dpif-planb.h

MAN_FRAGMENTS += ofproto/ofproto-planb-unixctl.man

tests_ovstest_SOURCES += \
	tests/test-planb-dpif.c \
	tests/test-planb-flow.c

TESTSUITE_AT += \
	tests/planb-dpif.at \
	tests/planb-odp.at \
	tests/planb.at

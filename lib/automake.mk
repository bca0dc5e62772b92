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

lib_LTLIBRARIES += lib/libplanb.la
lib_libplanb_la_SOURCES = \
	lib/planb-autovalidator.c \
	lib/planb-build.c \
	lib/planb-compile.c \
	lib/planb-lookup-avx2.c \
	lib/planb-lookup-avx512.c \
	lib/planb-lookup-neon.c \
	lib/planb-lookup-scalar.c \
	lib/planb-lookup-sse42.c \
	lib/planb-lookup-private.h \
	lib/planb-lookup.h \
	lib/planb-private.h \
	lib/planb-table.c \
	lib/planb.c \
	lib/planb.h
lib_libplanb_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0
if HAVE_VERSION_SCRIPT
lib_libplanb_la_LDFLAGS += \
	-Wl,--version-script=$(top_srcdir)/lib/libplanb.map
endif
lib_libplanb_la_DEPENDENCIES = lib/libplanb.map
include_HEADERS += lib/planb.h
pkgconfig_DATA += lib/libplanb.pc
dist_man_MANS += lib/planb.3

EXTRA_DIST += \
	lib/MEASUREMENTS.md \
	lib/libplanb.map \
	lib/libplanb.pc.in

lib/libplanb.pc: lib/libplanb.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) lib && \
	sed -e 's|[@]prefix[@]|$(prefix)|' \
	    -e 's|[@]exec_prefix[@]|$(exec_prefix)|' \
	    -e 's|[@]libdir[@]|$(libdir)|' \
	    -e 's|[@]includedir[@]|$(includedir)|' \
	    -e 's|[@]VERSION[@]|$(VERSION)|' \
	    $(srcdir)/lib/libplanb.pc.in > $@.tmp && mv $@.tmp $@
CLEANFILES += lib/libplanb.pc

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

check_PROGRAMS += tests/test-planb
tests_test_planb_SOURCES = tests/test-planb.c tests/test-planb.h
tests_test_planb_LDADD = lib/libplanb.la

# The same with the library's allocations failing.  --wrap needs the library's
# objects in the program itself.
check_PROGRAMS += tests/test-planb-nomem
tests_test_planb_nomem_SOURCES = tests/test-planb-nomem.c tests/test-planb.h
tests_test_planb_nomem_LDADD = lib/libplanb.la
tests_test_planb_nomem_LDFLAGS = $(AM_LDFLAGS) -static \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign

# Again with a root even for the smallest trees, which otherwise only big ones
# have.
check_PROGRAMS += tests/test-planb-root
tests_test_planb_root_SOURCES = \
	$(tests_test_planb_SOURCES) $(lib_libplanb_la_SOURCES)
tests_test_planb_root_CPPFLAGS = $(AM_CPPFLAGS) -DPLANB_MIN_ROOT=1

# Sanitizers must see the library too.
if HAVE_ASAN
check_PROGRAMS += tests/test-planb-asan
tests_test_planb_asan_SOURCES = \
	$(tests_test_planb_SOURCES) $(lib_libplanb_la_SOURCES)
tests_test_planb_asan_CPPFLAGS = $(AM_CPPFLAGS) -DPLANB_MIN_ROOT=32
tests_test_planb_asan_CFLAGS = $(AM_CFLAGS) \
	-fsanitize=address,undefined -fno-sanitize-recover=all
tests_test_planb_asan_LDFLAGS = $(AM_LDFLAGS) -fsanitize=address,undefined
endif
if HAVE_TSAN
check_PROGRAMS += tests/test-planb-tsan
tests_test_planb_tsan_SOURCES = \
	$(tests_test_planb_SOURCES) $(lib_libplanb_la_SOURCES)
tests_test_planb_tsan_CPPFLAGS = $(AM_CPPFLAGS) -DPLANB_MIN_ROOT=32
tests_test_planb_tsan_CFLAGS = $(AM_CFLAGS) -fsanitize=thread
tests_test_planb_tsan_LDFLAGS = $(AM_LDFLAGS) -fsanitize=thread
endif

if HAVE_DPDK
check_PROGRAMS += tests/test-planb-rib6
tests_test_planb_rib6_SOURCES = tests/test-planb-rib6.c tests/test-planb.h
tests_test_planb_rib6_CPPFLAGS = $(AM_CPPFLAGS) $(DPDK_CFLAGS)
tests_test_planb_rib6_LDADD = lib/libplanb.la $(DPDK_LIBS)
endif

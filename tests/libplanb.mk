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

# libFuzzer targets, built by clang whatever compiler builds the rest.  The
# suite runs them briefly; "make fuzz" does so for FUZZ_SECONDS each, and keeps
# what it learns in tests/fuzz-corpus, from where the next run goes on.
fuzz_targets = tests/fuzz-build tests/fuzz-changes tests/fuzz-fib
FUZZ_CFLAGS = -g -O1
FUZZ_SECONDS = 600
fuzz_fib_sources = \
	utilities/fib-parse.c \
	utilities/fib-parse.h \
	utilities/prefix-file.c \
	utilities/prefix-file.h \
	utilities/util.c \
	utilities/util.h \
	tests/test-planb.h
fuzz_compile = $(AM_V_GEN)$(MKDIR_P) tests && \
	$(CLANG) $(FUZZ_CFLAGS) -fno-sanitize-recover=all -DHAVE_CONFIG_H \
	    -DPLANB_MIN_ROOT=16 -I. -I$(srcdir)/lib -I$(srcdir)/utilities \
	    -I$(srcdir)/tests -o $@
fuzz_link = $(fuzz_compile) -fsanitize=fuzzer,address,undefined

fuzz_objects = $(patsubst lib/%.c,tests/fuzz-lib/%.o, \
	$(filter %.c,$(lib_libplanb_la_SOURCES)))

tests/fuzz-lib/%.o: lib/%.c $(filter %.h,$(lib_libplanb_la_SOURCES))
	$(AM_V_at)$(MKDIR_P) tests/fuzz-lib
	$(fuzz_compile) -fsanitize=fuzzer-no-link,address,undefined -c $<
tests/fuzz-build: tests/fuzz-build.c tests/fuzz.h tests/test-planb.h \
		$(fuzz_objects)
	$(fuzz_link) $(filter %.c %.o,$^)
tests/fuzz-changes: tests/fuzz-changes.c tests/fuzz.h tests/test-planb.h \
		$(fuzz_objects)
	$(fuzz_link) $(filter %.c %.o,$^)
tests/fuzz-fib: tests/fuzz-fib.c $(fuzz_fib_sources)
	$(fuzz_link) $(filter %.c,$^)

EXTRA_DIST += \
	tests/fuzz-build.c \
	tests/fuzz-changes.c \
	tests/fuzz-fib.c \
	tests/fuzz-fib.dict \
	tests/fuzz.h
CLEANFILES += $(fuzz_targets) $(fuzz_objects)

if HAVE_FUZZER
check_DATA += $(fuzz_targets)

fuzz: $(fuzz_targets)
	@for target in $(fuzz_targets); do \
	    dict=$(srcdir)/$$target.dict; \
	    test -e $$dict || dict=; \
	    corpus=tests/fuzz-corpus/$${target#tests/fuzz-}; \
	    $(MKDIR_P) $$corpus || exit 1; \
	    echo "$$target, $(FUZZ_SECONDS) seconds"; \
	    ./$$target -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
	        -max_len=4096 $${dict:+-dict=$$dict} -print_final_stats=1 \
	        -artifact_prefix=$$target- $(FUZZ_FLAGS) $$corpus || exit 1; \
	done
else
fuzz:
	@echo >&2 "configure found no clang with libFuzzer: install the Debian"
	@echo >&2 "packages clang and libclang-rt-dev, and configure again."
	@exit 1
endif
.PHONY: fuzz

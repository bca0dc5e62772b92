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

# The tests of libplanb and of the installed utilities, in a suite of their own:
# tests/libplanb.at, tests/utilities.at and tests/fuzz.at, and in
# tests/libplanb.mk the programs that they run.  The tests of the patched Open vSwitch are part of
# Open vSwitch's suite.

include tests/libplanb.mk

TESTSUITE_AT = \
	tests/fuzz.at \
	tests/libplanb.at \
	tests/testsuite.at \
	tests/utilities.at
TESTSUITE = $(srcdir)/tests/testsuite
AUTOTEST_PATH = tests:utilities

EXTRA_DIST += \
	$(TESTSUITE_AT) \
	$(TESTSUITE) \
	$(srcdir)/tests/package.m4 \
	tests/atlocal.in \
	tests/ovs-known-failures
DISTCLEANFILES += tests/atconfig

$(srcdir)/tests/package.m4: $(top_srcdir)/configure.ac
	$(AM_V_GEN){ \
	  echo '# Signature of the current package.'; \
	  echo 'm4_define([AT_PACKAGE_NAME],      [$(PACKAGE_NAME)])'; \
	  echo 'm4_define([AT_PACKAGE_TARNAME],   [$(PACKAGE_TARNAME)])'; \
	  echo 'm4_define([AT_PACKAGE_VERSION],   [$(PACKAGE_VERSION)])'; \
	  echo 'm4_define([AT_PACKAGE_STRING],    [$(PACKAGE_STRING)])'; \
	  echo 'm4_define([AT_PACKAGE_BUGREPORT], [$(PACKAGE_NAME)])'; \
	} > $@.tmp && mv $@.tmp $@

$(TESTSUITE): $(TESTSUITE_AT) $(srcdir)/tests/package.m4
	$(AM_V_GEN)$(AUTOTEST) -I '$(srcdir)/tests' -o $@.tmp \
	    $(srcdir)/tests/testsuite.at && mv $@.tmp $@
AUTOTEST = $(AUTOM4TE) --language=autotest

# "make check" runs both, and fails if either does.
check-libplanb: all-am $(check_PROGRAMS) $(check_LTLIBRARIES) $(check_DATA) \
		tests/atconfig tests/atlocal $(TESTSUITE)
	$(SHELL) '$(TESTSUITE)' -C tests AUTOTEST_PATH='$(AUTOTEST_PATH)' \
	    $(TESTSUITEFLAGS)

check-local:
	+@status=0; \
	$(MAKE) check-libplanb || status=1; \
	$(MAKE) check-vswitchd || status=1; \
	exit $$status

clean-local: clean-testsuite
clean-testsuite:
	test ! -f '$(TESTSUITE)' || \
	    $(SHELL) '$(TESTSUITE)' -C tests --clean
.PHONY: clean-testsuite

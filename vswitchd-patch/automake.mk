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

# The patched Open vSwitch, in the build directory under ovs/.
#
# Each step leaves a stamp in ovs/:
#
#     .planb-unpacked    the source and the patches are there
#     .planb-copied      so are our own files
#     .planb-configured  configured, with the arguments of .planb-args
#     .planb-built       built
#
# A stamp that is newer than all that it was made from stands for its step, so
# that a "make" with nothing to do does not enter ovs/ at all.  After a change,
# the steps write only files whose content differs, and Open vSwitch's own
# Makefile finds out what has to be built.
#
# To work on ovs/ directly, run "make -C ovs" there; unpacking undoes changes
# made there to files of Open vSwitch.

planb_ovs_scripts = \
	$(srcdir)/build-aux/ovs-copy \
	$(srcdir)/build-aux/ovs-unpack

# A patch series for each supported release of Open vSwitch.
planb_series = $(wildcard $(srcdir)/vswitchd-patch/[0-9]*/series)
planb_patches = $(wildcard $(srcdir)/vswitchd-patch/[0-9]*/*.patch)

# New files for Open vSwitch: libplanb, then what has the same place below
# vswitchd-patch as in Open vSwitch, then tests.
planb_ovs_files = \
	$(wildcard $(srcdir)/lib/planb*.[ch]) \
	$(wildcard $(srcdir)/vswitchd-patch/*.mk) \
	$(wildcard $(srcdir)/vswitchd-patch/[a-z]*/*.[ch]) \
	$(wildcard $(srcdir)/vswitchd-patch/[a-z]*/*.at) \
	$(wildcard $(srcdir)/vswitchd-patch/[a-z]*/*.man) \
	$(wildcard $(srcdir)/tests/planb*.at) \
	$(wildcard $(srcdir)/tests/test-planb*.[ch])
planb_ovs_new_files = $(patsubst $(srcdir)/%,%,$(planb_ovs_files))

EXTRA_DIST += \
	build-aux/ovs-copy \
	build-aux/ovs-unpack \
	vswitchd-patch/MEASUREMENTS.md \
	$(planb_series) \
	$(planb_patches) \
	$(planb_ovs_files)

# Has Open vSwitch's Makefile print as much as this one.
planb_verbosity = V=$(if $(V),$(V),$(AM_DEFAULT_VERBOSITY))

if BUILD_OVS
planb_all = ovs/.planb-built
planb_install = planb-install
planb_uninstall = planb-uninstall

ovs/.planb-args.stamp: build-aux/ovs-args
	@$(MKDIR_P) ovs
	@cmp -s build-aux/ovs-args ovs/.planb-args || \
	    cp build-aux/ovs-args ovs/.planb-args
	@touch $@
ovs/.planb-args: ovs/.planb-args.stamp
	@:

ovs/.planb-unpacked: $(OVS_SOURCE_STAMP) $(planb_ovs_scripts) \
		$(srcdir)/vswitchd-patch/$(OVS_RELEASE)/series \
		$(wildcard $(srcdir)/vswitchd-patch/$(OVS_RELEASE)/*.patch)
	$(AM_V_GEN)$(SHELL) $(srcdir)/build-aux/ovs-unpack \
	    $(OVS_SOURCE) $(OVS_VERSION) \
	    $(srcdir)/vswitchd-patch/$(OVS_RELEASE) ovs
	@touch $@

# The list of the last time tells of files that are gone since.
ovs/.planb-copied: ovs/.planb-unpacked $(planb_ovs_files) $(planb_ovs_scripts) \
		$(if $(filter-out $(planb_ovs_new_files),$(shell \
		    cat ovs/.planb-new-files 2>/dev/null)),planb-FORCE)
	$(AM_V_GEN)$(SHELL) $(srcdir)/build-aux/ovs-copy $(srcdir) ovs \
	    $(planb_ovs_new_files)
	@touch $@
planb-FORCE:

# Later changes of what configure is made from are up to the rules in Open
# vSwitch's own Makefile.
ovs/.planb-configured: ovs/.planb-args | ovs/.planb-copied
	$(AM_V_at)cd ovs && { test -x configure || ./boot.sh; }
	$(AM_V_at)cd ovs && eval "./configure `tr '\n' ' ' < .planb-args`"
	@touch $@

ovs/.planb-built: ovs/.planb-configured ovs/.planb-copied
	+$(AM_V_at)$(MAKE) -C ovs all $(planb_verbosity)
	@touch $@

planb-install: ovs/.planb-built
	+$(MAKE) -C ovs install DESTDIR='$(DESTDIR)'

planb-uninstall:
	+test ! -e ovs/Makefile || $(MAKE) -C ovs uninstall DESTDIR='$(DESTDIR)'

# Our tests in Open vSwitch's suite, and the whole of that suite.
check-vswitchd: ovs/.planb-built
	+$(SHELL) $(srcdir)/build-aux/ovs-check ovs '$(MAKE)' planb \
	    $(TESTSUITEFLAGS)
check-ovs: ovs/.planb-built
	+$(MAKE) -C ovs check TESTSUITEFLAGS='$(TESTSUITEFLAGS)' \
	    RECHECK=$(RECHECK)
else
planb_all =
planb_install =
planb_uninstall =

check-vswitchd:
	@echo "Open vSwitch was not built: its tests are left out."
check-ovs:
	@echo >&2 "configured with --without-ovs-source: no tests to run."
	@exit 1
endif

all-local: $(planb_all)
install-exec-local: $(planb_install)
uninstall-local: $(planb_uninstall)
.PHONY: planb-FORCE planb-install planb-uninstall

clean-local:
	+test ! -e ovs/Makefile || $(MAKE) -C ovs clean
	rm -f ovs/.planb-built

distclean-local:
	-rm -rf ovs ovs.new

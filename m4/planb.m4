dnl -*- autoconf -*-
dnl
dnl Copyright (c) 2026 The PlanB for Open vSwitch Authors.
dnl
dnl Licensed under the Apache License, Version 2.0 (the "License");
dnl you may not use this file except in compliance with the License.
dnl You may obtain a copy of the License at:
dnl
dnl     http://www.apache.org/licenses/LICENSE-2.0
dnl
dnl Unless required by applicable law or agreed to in writing, software
dnl distributed under the License is distributed on an "AS IS" BASIS,
dnl WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
dnl See the License for the specific language governing permissions and
dnl limitations under the License.

dnl PLANB_MISSING(WHAT, PACKAGE)
dnl
dnl Stops with one line that says what is missing and which Debian package
dnl brings it.
AC_DEFUN([PLANB_MISSING],
  [AC_MSG_ERROR([$1 not found: install the Debian package $2])])

dnl PLANB_NEED_PROG(VARIABLE, PROGRAM, PACKAGE)
AC_DEFUN([PLANB_NEED_PROG],
  [AC_CHECK_PROG([$1], [$2], [$2])
   if test -z "$$1"; then
     PLANB_MISSING([$2], [$3])
   fi])

dnl PLANB_PROG_CC
dnl
dnl AC_PROG_CC, after a check that a C compiler and the C library's headers are
dnl there: AC_PROG_CC's own errors do not tell what to install.  Debian's gcc
dnl only recommends libc6-dev.
AC_DEFUN([PLANB_PROG_CC],
  [if test -z "$CC"; then
     AC_CHECK_PROGS([planb_cc], [gcc cc clang])
     if test -z "$planb_cc"; then
       PLANB_MISSING([a C compiler], [gcc])
     fi
   fi
   AC_MSG_CHECKING([for the headers of the C library])
   echo '#include <stdio.h>' > conftest.c
   if ${CC-$planb_cc} -E conftest.c > /dev/null 2>&1; then
     AC_MSG_RESULT([yes])
   else
     AC_MSG_RESULT([no])
     PLANB_MISSING([stdio.h], [libc6-dev])
   fi
   rm -f conftest.c
   AC_PROG_CC])

dnl PLANB_CHECK_TOOLS
dnl
dnl What the build needs besides a compiler.
AC_DEFUN([PLANB_CHECK_TOOLS],
  [PLANB_NEED_PROG([PKG_CONFIG], [pkg-config], [pkg-config])
   AC_PATH_PROG([PYTHON3], [python3])
   if test -z "$PYTHON3"; then
     PLANB_MISSING([python3], [python3])
   fi
   # For a test alone.
   AC_CHECK_PROGS([CXX], [g++ c++ clang++])
   AC_ARG_VAR([PKG_CONFIG_PATH], [directories to search for .pc files])])

dnl PLANB_TRY_CFLAGS(FLAGS, IF-WORKS, IF-NOT)
dnl
dnl Links and runs a program built with FLAGS: a sanitizer's run time may be
dnl missing, or refuse to run, where the compiler knows its option.
AC_DEFUN([PLANB_TRY_CFLAGS],
  [AC_MSG_CHECKING([whether programs built with $1 run])
   planb_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS $1"
   AC_RUN_IFELSE([AC_LANG_PROGRAM([], [])],
     [planb_works=yes], [planb_works=no], [planb_works=no])
   CFLAGS=$planb_save_CFLAGS
   AC_MSG_RESULT([$planb_works])
   AS_IF([test $planb_works = yes], [$2], [$3])])

dnl PLANB_ENABLE_WARNINGS
AC_DEFUN([PLANB_ENABLE_WARNINGS],
  [PLANB_CFLAGS=
   for planb_flag in -Wall -Wextra -Wno-sign-compare -Wpointer-arith \
       -Wformat-security -Wswitch-enum -Wstrict-prototypes \
       -Wold-style-definition -Wmissing-prototypes -Wshadow \
       -Wmissing-field-initializers -fno-strict-aliasing; do
     AC_MSG_CHECKING([whether $CC accepts $planb_flag])
     planb_save_CFLAGS=$CFLAGS
     CFLAGS="$CFLAGS -Werror $planb_flag"
     AC_COMPILE_IFELSE([AC_LANG_SOURCE([int planb_dummy;])],
       [AC_MSG_RESULT([yes])
        PLANB_CFLAGS="$PLANB_CFLAGS $planb_flag"],
       [AC_MSG_RESULT([no])])
     CFLAGS=$planb_save_CFLAGS
   done
   AC_SUBST([PLANB_CFLAGS])])

dnl PLANB_ENABLE_WERROR
AC_DEFUN([PLANB_ENABLE_WERROR],
  [AC_ARG_ENABLE([Werror],
     [AS_HELP_STRING([--enable-Werror],
        [make warnings errors, in libplanb and in Open vSwitch])],
     [], [enable_Werror=no])
   if test "$enable_Werror" != no; then
     PLANB_CFLAGS="$PLANB_CFLAGS -Werror"
   fi])

dnl PLANB_CHECK_SANITIZERS
dnl
dnl Sets the conditionals HAVE_ASAN (address and undefined) and HAVE_TSAN.
AC_DEFUN([PLANB_CHECK_SANITIZERS],
  [PLANB_TRY_CFLAGS([-fsanitize=address,undefined],
     [have_asan=yes], [have_asan=no])
   PLANB_TRY_CFLAGS([-fsanitize=thread], [have_tsan=yes], [have_tsan=no])
   AC_SUBST([have_asan])
   AC_SUBST([have_tsan])
   AM_CONDITIONAL([HAVE_ASAN], [test $have_asan = yes])
   AM_CONDITIONAL([HAVE_TSAN], [test $have_tsan = yes])])

dnl PLANB_CHECK_FUZZER
dnl
dnl Sets the conditional HAVE_FUZZER, and CLANG, if there is a clang that makes
dnl libFuzzer targets.  It need not be the compiler for the rest.
AC_DEFUN([PLANB_CHECK_FUZZER],
  [AC_CHECK_PROGS([CLANG], [clang])
   have_fuzzer=no
   if test -n "$CLANG"; then
     AC_MSG_CHECKING([whether $CLANG makes libFuzzer targets])
     cat > conftest.c << 'PLANB_EOF'
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return !data && size;
}
PLANB_EOF
     if $CLANG -fsanitize=fuzzer,address,undefined -o conftest.fuzz \
         conftest.c > /dev/null 2>&1 \
         && ./conftest.fuzz -runs=1 > /dev/null 2>&1; then
       have_fuzzer=yes
     fi
     rm -rf conftest.c conftest.fuzz
     AC_MSG_RESULT([$have_fuzzer])
   fi
   AC_SUBST([have_fuzzer])
   AM_CONDITIONAL([HAVE_FUZZER], [test $have_fuzzer = yes])])

dnl PLANB_CHECK_VERSION_SCRIPT
dnl
dnl Sets the conditional HAVE_VERSION_SCRIPT if the linker takes one.
AC_DEFUN([PLANB_CHECK_VERSION_SCRIPT],
  [AC_CACHE_CHECK([whether the linker takes version scripts],
     [planb_cv_version_script],
     [echo '{ global: main; local: *; };' > conftest.map
      planb_save_LDFLAGS=$LDFLAGS
      LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [planb_cv_version_script=yes], [planb_cv_version_script=no])
      LDFLAGS=$planb_save_LDFLAGS
      rm -f conftest.map])
   AM_CONDITIONAL([HAVE_VERSION_SCRIPT],
     [test $planb_cv_version_script = yes])])

dnl PLANB_CHECK_DPDK
dnl
dnl Sets with_dpdk to shared, static or no, and the conditional HAVE_DPDK.
AC_DEFUN([PLANB_CHECK_DPDK],
  [AC_ARG_WITH([dpdk],
     [AS_HELP_STRING([--with-dpdk=shared|static|no],
        [how Open vSwitch links DPDK (default: shared if libdpdk is found)])],
     [], [with_dpdk=check])
   AC_MSG_CHECKING([for DPDK])
   planb_dpdk_version=`$PKG_CONFIG --modversion libdpdk 2> /dev/null`
   AC_MSG_RESULT([${planb_dpdk_version:-not found}])
   AS_CASE([$with_dpdk],
     [check],
       [AS_IF([test -n "$planb_dpdk_version"],
          [with_dpdk=shared], [with_dpdk=no])],
     [yes], [with_dpdk=shared],
     [shared|static|no], [],
     [AC_MSG_ERROR([--with-dpdk=$with_dpdk: must be shared, static or no])])
   if test $with_dpdk != no; then
     if test -z "$planb_dpdk_version"; then
       PLANB_MISSING([DPDK], [libdpdk-dev])
     fi
     DPDK_CFLAGS=`$PKG_CONFIG --cflags libdpdk`
     DPDK_LIBS=`$PKG_CONFIG --libs libdpdk`
   fi
   AC_SUBST([DPDK_CFLAGS])
   AC_SUBST([DPDK_LIBS])
   AC_SUBST([with_dpdk])
   AM_CONDITIONAL([HAVE_DPDK], [test $with_dpdk != no])])

dnl PLANB_CHECK_LIBUNWIND
dnl
dnl Sets with_libunwind to yes or no.
AC_DEFUN([PLANB_CHECK_LIBUNWIND],
  [AC_ARG_WITH([libunwind],
     [AS_HELP_STRING([--with-libunwind],
        [have Open vSwitch print a backtrace when it crashes
         (default: if libunwind is found)])],
     [], [with_libunwind=check])
   if test "$with_libunwind" != no; then
     planb_save_LIBS=$LIBS
     planb_libunwind=no
     AC_CHECK_LIB([unwind], [unw_backtrace],
       [AC_CHECK_HEADER([libunwind.h], [planb_libunwind=yes])])
     LIBS=$planb_save_LIBS
     if test "$with_libunwind$planb_libunwind" = yesno; then
       PLANB_MISSING([libunwind], [libunwind-dev])
     fi
     with_libunwind=$planb_libunwind
   fi])

dnl PLANB_CHECK_OVS_SOURCE
dnl
dnl Sets the conditional BUILD_OVS and, if that is true, OVS_SOURCE to the
dnl directory or tarball, OVS_SOURCE_STAMP to a file that is newer whenever
dnl OVS_SOURCE is, OVS_VERSION and OVS_RELEASE.
AC_DEFUN([PLANB_CHECK_OVS_SOURCE],
  [AC_ARG_WITH([ovs-source],
     [AS_HELP_STRING([--with-ovs-source=DIR|TARBALL],
        [source of Open vSwitch (default:
         /usr/src/openvswitch/openvswitch.tar.gz)])
AS_HELP_STRING([--without-ovs-source], [build libplanb alone])],
     [], [with_ovs_source=yes])
   OVS_SOURCE=
   OVS_SOURCE_STAMP=
   OVS_VERSION=
   OVS_RELEASE=
   if test "$with_ovs_source" != no; then
     PLANB_NEED_PROG([PATCH], [patch], [patch])
     PLANB_NEED_PROG([AUTORECONF], [autoreconf], [autoconf])
     PLANB_NEED_PROG([AUTOMAKE_PROG], [automake], [automake])
     PLANB_NEED_PROG([LIBTOOLIZE], [libtoolize], [libtool])
     if test "$with_ovs_source" = yes; then
       with_ovs_source=/usr/src/openvswitch/openvswitch.tar.gz
       if test ! -e "$with_ovs_source"; then
         AC_MSG_ERROR([Open vSwitch source not found: install the Debian dnl
package openvswitch-source, or give --with-ovs-source=DIR|TARBALL])
       fi
     fi
     AC_MSG_CHECKING([for the source of Open vSwitch])
     if test -d "$with_ovs_source"; then
       OVS_SOURCE=`cd "$with_ovs_source" && pwd`
       OVS_SOURCE_STAMP=$OVS_SOURCE/configure.ac
       planb_configure_ac=`cat "$OVS_SOURCE_STAMP" 2> /dev/null`
     elif test -f "$with_ovs_source"; then
       OVS_SOURCE=`cd "\`dirname "$with_ovs_source"\`" && pwd`
       OVS_SOURCE=$OVS_SOURCE/`basename "$with_ovs_source"`
       OVS_SOURCE_STAMP=$OVS_SOURCE
       planb_configure_ac=`tar -xOf "$OVS_SOURCE" --wildcards \
         --no-wildcards-match-slash '*/configure.ac' 2> /dev/null`
     else
       AC_MSG_RESULT([no])
       AC_MSG_ERROR([--with-ovs-source=$with_ovs_source: no such dnl
directory or file])
     fi
     OVS_VERSION=`AS_ECHO(["$planb_configure_ac"]) \
       | sed -n 's/^[[A]]C_INIT(openvswitch, *\([[0-9.]]*\).*/\1/p'`
     OVS_RELEASE=`AS_ECHO(["$OVS_VERSION"]) \
       | sed 's/^\([[0-9]]*\.[[0-9]]*\).*/\1/'`
     if test -z "$OVS_VERSION"; then
       AC_MSG_RESULT([no])
       AC_MSG_ERROR([$OVS_SOURCE: not the source of Open vSwitch])
     fi
     AC_MSG_RESULT([$OVS_SOURCE (version $OVS_VERSION)])
     if test ! -f "$srcdir/vswitchd-patch/$OVS_RELEASE/series"; then
       AC_MSG_ERROR([Open vSwitch $OVS_VERSION: no patches for this dnl
release, vswitchd-patch/$OVS_RELEASE/series is missing])
     fi
   fi
   AC_SUBST([OVS_SOURCE])
   AC_SUBST([OVS_SOURCE_STAMP])
   AC_SUBST([OVS_VERSION])
   AC_SUBST([OVS_RELEASE])
   AM_CONDITIONAL([BUILD_OVS], [test "$with_ovs_source" != no])])

dnl PLANB_OVS_CONFIGURE_ARGS
dnl
dnl Sets OVS_CONFIGURE_ARGS to the arguments for Open vSwitch's own configure,
dnl quoted for the shell, without the installation directories (make knows
dnl those).
AC_DEFUN([PLANB_OVS_CONFIGURE_ARGS],
  [AC_ARG_VAR([OVS_CONFIGURE_FLAGS],
     [more arguments for the configure script of Open vSwitch])
   OVS_CONFIGURE_ARGS=
   if test $with_dpdk != no; then
     OVS_CONFIGURE_ARGS="--with-dpdk=$with_dpdk"
   fi
   if test $with_libunwind = no; then
     # Open vSwitch has no option for this, but takes what it finds.
     OVS_CONFIGURE_ARGS="$OVS_CONFIGURE_ARGS ac_cv_lib_unwind_unw_backtrace=no"
   fi
   if test "$enable_Werror" != no; then
     OVS_CONFIGURE_ARGS="$OVS_CONFIGURE_ARGS --enable-Werror"
   fi
   for planb_var in CC CFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_PATH; do
     eval "planb_value=\$$planb_var"
     if test -n "$planb_value"; then
       planb_value=`AS_ECHO(["$planb_value"]) | sed "s/'/'\\\\\\\\''/g"`
       OVS_CONFIGURE_ARGS="$OVS_CONFIGURE_ARGS $planb_var='$planb_value'"
     fi
   done
   OVS_CONFIGURE_ARGS="$OVS_CONFIGURE_ARGS $OVS_CONFIGURE_FLAGS"
   AC_SUBST([OVS_CONFIGURE_ARGS])])

dnl PLANB_SUMMARY
dnl
dnl Says what was found and chosen.
AC_DEFUN([PLANB_SUMMARY],
  [planb_ovs_summary="none, libplanb alone is built"
   if test -n "$OVS_SOURCE"; then
     planb_ovs_summary="$OVS_VERSION from $OVS_SOURCE"
   fi
   planb_dpdk_summary=$with_dpdk
   if test $with_dpdk != no; then
     planb_dpdk_summary="$planb_dpdk_version, $with_dpdk"
   fi
   cat << PLANB_EOF

$PACKAGE_NAME $PACKAGE_VERSION
  Open vSwitch       $planb_ovs_summary
PLANB_EOF
   if test -n "$OVS_SOURCE"; then
     cat << PLANB_EOF
  patches            vswitchd-patch/$OVS_RELEASE/series
PLANB_EOF
   fi
   cat << PLANB_EOF
  DPDK               $planb_dpdk_summary
  libunwind          $with_libunwind
  compiler           $CC $CFLAGS
  sanitizer tests    address and undefined: $have_asan, thread: $have_tsan
  fuzzing            $have_fuzzer
  installation in    $prefix

PLANB_EOF
])

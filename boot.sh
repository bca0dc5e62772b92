#! /bin/sh
# Makes ./configure.  Each tool comes with the Debian package of the name
# that the error message gives.
for tool in autoreconf:autoconf automake:automake libtoolize:libtool; do
    if ! command -v "${tool%%:*}" > /dev/null; then
        echo >&2 "boot.sh: ${tool%%:*} not found:" \
                 "install the Debian package ${tool##*:}"
        exit 1
    fi
done
cd "$(dirname "$0")" && exec autoreconf --install --force

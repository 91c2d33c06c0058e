#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Write /etc/fwlab/image.json, which records what the image contains. Results quote it, the kernel above all.
set -eu

mkdir -p /etc/fwlab
exec python3 - <<'END'
import hashlib, json, os, subprocess

query = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n"]
packages = sorted(subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines())
versions = dict(line.split(" ", 1) for line in packages)
kernels = sorted(os.listdir("/lib/modules"))
assert len(kernels) == 1, f"one kernel wanted, found {kernels}"
quoted = ["nftables", "iptables", "ipset", "iproute2", "xdp-tools", "linux-perf", "netsniff-ng", "libc6", "python3"]
manifest = {
    "image": os.environ["FWLAB_ROLE"],
    "key": os.environ["FWLAB_KEY"],
    "built": os.environ["FWLAB_BUILT"],
    "kernel": kernels[0],
    "kernel_package": versions[f"linux-image-{kernels[0]}"],
    "versions": {name: versions[name] for name in quoted if name in versions},
    "packages": len(packages),
    "packages_sha256": hashlib.sha256("\n".join(packages).encode()).hexdigest(),
}
with open("/etc/fwlab/image.json", "w") as file:
    json.dump(manifest, file, indent=1)
    file.write("\n")
assert json.load(open("/etc/fwlab/image.json"))["kernel"] == os.uname().release
END

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cloud-init reads its seed from a NoCloud disk and probes for no other data source. Only the modules that a lab's
# seed uses are enabled: each module costs a fraction of a second in an emulated machine.
set -eu

cat >/etc/cloud/cloud.cfg.d/99-fwlab.cfg <<'END'
# SPDX-License-Identifier: GPL-2.0-or-later
datasource_list: [NoCloud]
datasource: {NoCloud: {fs_label: cidata}}
system_info:
  default_user:
    name: vagrant
    gecos: Lab user
    groups: [adm, sudo]
    sudo: ["ALL=(ALL) NOPASSWD:ALL"]
    shell: /bin/bash
    lock_passwd: true
  network: {renderers: [networkd]}
manage_etc_hosts: true
disable_root: true
ssh_pwauth: false
ssh_genkeytypes: [ed25519]
no_ssh_fingerprints: true
ssh: {emit_keys_to_console: false}
cloud_init_modules: [bootcmd, write-files, set_hostname, update_etc_hosts, users-groups, ssh]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-user]
END

python3 -c 'import yaml; assert yaml.safe_load(open("/etc/cloud/cloud.cfg.d/99-fwlab.cfg"))["datasource_list"]'

# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes that run FreeBSD. The box's own rc.d script (provision/dut-freebsd/60-seed.sh) reads their seed at every boot;
# nuageinit would read one at the first boot only, and knows neither static routes nor static neighbours.

module FirewallLab
  module Systems
    module Freebsd
      # Vagrant's word for the guest.
      GUEST = :freebsd

      # The shell in which Vagrant runs commands there.
      SHELL = "/bin/sh"

      # {file on the seed CD: template in provision/cloud-init}
      SEED = { "rc.conf" => "rc.conf", "hosts" => "hosts", "authorized_keys" => "authorized_keys" }.freeze

      # With event indexes, vtnet can miss the notification for a full receive ring while its CPU is throttled, and
      # never receives a packet again.
      QEMU_ARGUMENTS = Nics::UNINDEXED
    end
  end
end

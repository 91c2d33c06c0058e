# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes that run Debian. cloud-init reads their seed.

module FirewallLab
  module Systems
    module Linux
      # Vagrant's word for the guest.
      GUEST = :debian

      # The shell in which Vagrant runs commands there.
      SHELL = "bash -l"

      # {file on the seed CD: template in provision/cloud-init}
      SEED = { "user-data" => "user-data", "meta-data" => "meta-data", "network-config" => "network-config" }.freeze

      # Its saved state can start another machine (saved_machine.rb).
      SAVABLE = true

      QEMU_ARGUMENTS = [].freeze
    end
  end
end

# SPDX-License-Identifier: GPL-2.0-or-later
# Macvtap links: both machines share one NIC of the host, which host.yml names. See fwlab/testbed/links/.

require_relative "virtio"

module FirewallLab
  module Links
    module Macvtap
      # libvirt's type of such an interface.
      INTERFACE = "direct"

      QEMU_ARGUMENTS = Virtio::QEMU_ARGUMENTS

      # Adds one end of a link to a machine. Mode "bridge": the two ends reach each other through the NIC's driver.
      def self.attach(vm, link, _address)
        vm.network :public_network, dev: host_device(link), type: "direct", mode: "bridge", mac: link.near["mac"],
                                    auto_config: false, libvirt__driver_name: Virtio.driver(link),
                                    libvirt__driver_queues: link.queues
      end

      def self.ports(_link) = []

      # The NIC that host.yml names; "dummy" is one that the project makes.
      def self.host_device(link)
        nic = link.host.is_a?(Hash) ? link.host["nic"] : nil
        nic.nil? || nic == "dummy" ? link.device : nic.to_s
      end
    end
  end
end

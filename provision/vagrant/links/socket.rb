# SPDX-License-Identifier: GPL-2.0-or-later
# Socket links: frames travel in UDP datagrams between two QEMUs, on the loopback address. See fwlab/testbed/links/.

module FirewallLab
  module Links
    module Socket
      # libvirt's type of such an interface.
      INTERFACE = "udp"

      # A machine with such links can be saved, and continue with other ports (saved_machine.rb).
      SAVABLE = true

      # Adds one end of a link to a machine. `vm` is Vagrant's config.vm of the machine.
      def self.attach(vm, link, address)
        vm.network :private_network, ip: link.near["ipv6"].split("/").first, mac: link.near["mac"],
                   auto_config: false, libvirt__tunnel_type: "udp",
                   libvirt__tunnel_local_ip: address, libvirt__tunnel_local_port: link.local_port,
                   libvirt__tunnel_ip: address, libvirt__tunnel_port: link.remote_port
      end

      # What this end listens on: [[protocol, port], ...]
      def self.ports(link) = [[:udp, link.local_port]]
    end
  end
end

# SPDX-License-Identifier: GPL-2.0-or-later
# Virtio links: both machines are ports of a bridge of their own on the host. See fwlab/testbed/links/.

module FirewallLab
  module Links
    module Virtio
      # libvirt's type of such an interface.
      INTERFACE = "bridge"

      # What the NICs of a machine can do on a socket link, and no more. Otherwise a tap device would let the guest send
      # and receive TCP segments of 64 KiB, and rules would see fewer packets.
      OFFLOADS = %w[csum gso guest_csum guest_tso4 guest_tso6 guest_ecn guest_ufo host_tso4 host_tso6 host_ecn
                    host_ufo].freeze
      QEMU_ARGUMENTS = OFFLOADS.flat_map { |name| ["-global", "virtio-net-pci.#{name}=off"] }.freeze

      # Adds one end of a link to a machine. `vm` is Vagrant's config.vm of the machine.
      def self.attach(vm, link, _address)
        vm.network :public_network, dev: link.device, type: "bridge", mac: link.near["mac"], auto_config: false,
                                    libvirt__driver_name: driver(link), libvirt__driver_queues: link.queues
      end

      # libvirt's name for who carries the frames: the kernel (vhost), or QEMU itself.
      def self.driver(link) = link.accelerator == "kvm" ? "vhost" : "qemu"

      # What this end listens on: nothing.
      def self.ports(_link) = []

      # The host's NIC that this end is attached to.
      def self.host_device(link) = link.device
    end
  end
end

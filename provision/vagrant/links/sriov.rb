# SPDX-License-Identifier: GPL-2.0-or-later
# SR-IOV links: each end is a virtual function of a NIC, handed to the machine. See fwlab/testbed/links/.

module FirewallLab
  module Links
    module Sriov
      # libvirt's type of such an interface.
      INTERFACE = "hostdev"

      ADDRESS = /\A(?<domain>\h{4}):(?<bus>\h{2}):(?<slot>\h{2})\.(?<function>[0-7])\z/

      # The machine gets no interface; `hand_over` gives it the device.
      def self.attach(_vm, _link, _address) = nil

      # Gives the VF at this end to the machine. `libvirt` is the provider's configuration of the machine.
      def self.hand_over(libvirt, link)
        ends = link.host.is_a?(Hash) ? link.host["ends"] : nil
        address = ADDRESS.match((ends.is_a?(Hash) ? ends[link.role] : nil).to_s)
        return unless address # provision/host/links says what is wrong with host.yml

        libvirt.pci(**address.named_captures.to_h { |name, digits| [name.to_sym, "0x#{digits}"] })
      end

      def self.ports(_link) = []
    end
  end
end

# SPDX-License-Identifier: GPL-2.0-or-later

module FirewallLab
  module Links
    module Pigeon
      INTERFACE = "avian"

      def self.attach(vm, link, address)
        vm.network :avian, from: address, mac: link.near["mac"]
      end

      def self.ports(_link) = []
    end
  end
end
